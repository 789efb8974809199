// Fetch n pages one after the other, and say what that cost: one JSON object in (first line of
// standard input), one out.
//
// A page before them is not counted, as with the other clients (probes/page_costs.py). After it this
// program writes the line "ready" and waits for a line, so that the server's counters can be reset.
// Standard library only: one set of certificates for all connections, no session taken up again.
package main

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"runtime"
	"syscall"
	"time"
)

type spec struct {
	URLs    []string `json:"urls"`
	Kept    bool     `json:"kept"`
	Trusted string   `json:"trusted"` // a file of certificates
}

type answer struct {
	CPUS       float64  `json:"cpu_s"`
	WallS      float64  `json:"wall_s"`
	LoadS      float64  `json:"load_s"`
	Loads      int      `json:"loads"`
	HandshakeS float64  `json:"handshake_s"`
	Handshakes int      `json:"handshakes"`
	Digests    []string `json:"digests"` // SHA-256 of each body
	Version    string   `json:"version"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return err
	}
	var asked spec
	if err := json.Unmarshal(line, &asked); err != nil {
		return err
	}
	if _, err := fetch(asked, asked.URLs[:1]); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := input.ReadBytes('\n'); err != nil {
		return err
	}
	found, err := fetch(asked, asked.URLs)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

// fetch gets pages with a client of its own. Nothing else runs in this process meanwhile, so that
// the CPU time between two moments is that of what happened between them.
func fetch(asked spec, urls []string) (answer, error) {
	found := answer{Loads: 1, Version: runtime.Version()}
	begun, wall := cpu(), time.Now()
	pem, err := os.ReadFile(asked.Trusted)
	if err != nil {
		return found, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return found, errors.New("no certificate in " + asked.Trusted)
	}
	found.LoadS = cpu() - begun
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: !asked.Kept,
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	var from float64
	trace := &httptrace.ClientTrace{
		TLSHandshakeStart: func() { from = cpu() },
		TLSHandshakeDone: func(tls.ConnectionState, error) {
			found.HandshakeS += cpu() - from
			found.Handshakes++
		},
	}
	for _, url := range urls {
		request, err := http.NewRequest("GET", url, nil)
		if err != nil {
			return found, err
		}
		reply, err := client.Do(request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
		if err != nil {
			return found, err
		}
		body, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil {
			return found, err
		}
		digest := sha256.Sum256(body)
		found.Digests = append(found.Digests, hex.EncodeToString(digest[:]))
	}
	found.CPUS, found.WallS = cpu()-begun, time.Since(wall).Seconds()
	return found, nil
}

// cpu is what this process has used so far, user and system, in seconds.
func cpu() float64 {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return seconds(used.Utime) + seconds(used.Stime)
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
