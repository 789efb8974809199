// A second server of HTTP/3, on quic-go, which shares no code with aioquic.
//
// main CHAIN KEY serves {} as any page, refuses what is no GET, and takes requests before the
// handshake is done (0-RTT). It prints its port, and then a line for each request: how many of the
// connections so far took up a session, and how many were asked before their handshake's end.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

type connection struct{}

func main() {
	certificate, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	check(err)
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check(err)
	configuration := http3.ConfigureTLSConfig(&tls.Config{
		Certificates: []tls.Certificate{certificate},
	})
	transport := &quic.Transport{Conn: socket}
	listener, err := transport.ListenEarly(configuration, &quic.Config{Allow0RTT: true})
	check(err)
	var lock sync.Mutex
	resumed, early := 0, 0
	answer := func(w http.ResponseWriter, r *http.Request) {
		asked := r.Context().Value(connection{}).(*quic.Conn)
		lock.Lock()
		defer lock.Unlock()
		select {
		case <-asked.HandshakeComplete():
		default:
			early++
		}
		if asked.ConnectionState().TLS.DidResume {
			resumed++
		}
		fmt.Println(resumed, early)
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Write([]byte("{}"))
	}
	server := &http3.Server{
		Handler: http.HandlerFunc(answer),
		ConnContext: func(c context.Context, of *quic.Conn) context.Context {
			return context.WithValue(c, connection{}, of)
		},
	}
	fmt.Println(socket.LocalAddr().(*net.UDPAddr).Port)
	check(server.ServeListener(listener))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
