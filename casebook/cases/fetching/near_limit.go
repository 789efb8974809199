// Fetch n pages, each over a connection of its own, all at once: one JSON object in (standard
// input), one out (standard output), in the shape of the probes' answers (probes/fetch.py).
//
// Standard library only. It stands for what this machine allows a client: compiled, on all cores,
// one set of certificates for all connections, no TLS session taken up again.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

type spec struct {
	URL     string  `json:"url"`
	N       int     `json:"n"`
	DelayS  float64 `json:"delay_s"`
	Trusted string  `json:"trusted"` // a file of certificates
	BoundS  float64 `json:"bound_s"`
}

type response struct {
	Page    int  `json:"page"`
	Status  *int `json:"status"`
	GotPage *int `json:"got_page"`
}

type failure struct {
	Page    *int   `json:"page"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

type answer struct {
	Versions    map[string]string `json:"versions"`
	Failure     *failure          `json:"failure"`
	Responses   []response        `json:"responses"`
	WallS       float64           `json:"wall_s"`
	UserS       float64           `json:"user_s"`
	SysS        float64           `json:"sys_s"`
	ProcessCPUS float64           `json:"process_cpu_s"`
	PeakRSSKiB  int64             `json:"peak_rss_kib"`
	Counters    map[string]int    `json:"counters"`
}

func main() {
	var asked spec
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		fmt.Fprintln(os.Stderr, "the spec cannot be read:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(run(asked)); err != nil {
		os.Exit(1)
	}
}

func run(asked spec) answer {
	versions := map[string]string{"go": runtime.Version()}
	result := answer{Versions: versions, Responses: make([]response, asked.N)}
	url := asked.URL + "/delay/" + strconv.FormatFloat(asked.DelayS, 'f', -1, 64) + "?page="
	userBefore, sysBefore := cpu()
	start := time.Now()
	client, err := newClient(asked)
	if err != nil {
		result.Failure = &failure{nil, "CertificatesNotLoaded", err.Error()}
		return result
	}
	failures := make([]*failure, asked.N)
	var all sync.WaitGroup
	for page := range result.Responses {
		all.Add(1)
		go func(page int) {
			defer all.Done()
			result.Responses[page], failures[page] = fetch(client, url, page)
		}(page)
	}
	all.Wait()
	result.WallS = time.Since(start).Seconds()
	user, sys := cpu()
	result.UserS, result.SysS, result.ProcessCPUS = user-userBefore, sys-sysBefore, user+sys
	result.PeakRSSKiB = peakRSSKiB()
	result.Counters = map[string]int{
		"contexts": 1, "load_verify_locations": 1, "default_loads": 0, // those of newClient
	}
	for _, each := range failures {
		if each != nil {
			result.Failure = each
			break
		}
	}
	return result
}

// newClient makes a client that uses each connection once, after the one load of the certificates
// that all connections share.
func newClient(asked spec) (*http.Client, error) {
	pem, err := os.ReadFile(asked.Trusted)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in the file")
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true,
	}
	bound := time.Duration(asked.BoundS * float64(time.Second))
	return &http.Client{Transport: transport, Timeout: bound}, nil
}

func fetch(client *http.Client, url string, page int) (response, *failure) {
	got := response{Page: page}
	reply, err := client.Get(url + strconv.Itoa(page))
	if err != nil {
		return got, &failure{&page, kind(err), err.Error()}
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		return got, &failure{&page, kind(err), err.Error()}
	}
	got.Status, got.GotPage = &reply.StatusCode, pageOf(body)
	if reply.StatusCode != http.StatusOK {
		return got, &failure{&page, "WrongStatus", "status " + reply.Status}
	}
	if got.GotPage == nil || *got.GotPage != page {
		return got, &failure{&page, "WrongPage", fmt.Sprintf("asked for page %d, got another", page)}
	}
	return got, nil
}

// pageOf is the page number that the server echoed, or nil.
func pageOf(body []byte) *int {
	var echo struct {
		Args struct {
			Page []string `json:"page"`
		} `json:"args"`
	}
	if json.Unmarshal(body, &echo) != nil || len(echo.Args.Page) != 1 {
		return nil
	}
	page, err := strconv.Atoi(echo.Args.Page[0])
	if err != nil {
		return nil
	}
	return &page
}

// kind is the type of the innermost error: the outer ones only say where it happened.
func kind(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", err), "*")
}

func cpu() (user, sys float64) {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return seconds(used.Utime), seconds(used.Stime)
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// peakRSSKiB is the most memory that this process has held. Linux's ru_maxrss starts with the
// memory of the process that started this one, so VmHWM of proc(5) comes first.
func peakRSSKiB() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "VmHWM:") {
			kib, _ := strconv.ParseInt(strings.Fields(line)[1], 10, 64)
			return kib
		}
	}
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	if runtime.GOOS == "darwin" {
		return int64(used.Maxrss) / 1024
	}
	return int64(used.Maxrss)
}
