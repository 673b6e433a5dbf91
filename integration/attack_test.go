package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// An attacker comes to the store's port without the key, from any host, until it is ended:
//
//	attack HOW ADDR:PORT
//
// It says "round N: ..." for what it saw, each time in other words, and "got in" if it ever did.
func init() {
	if len(os.Args) != 4 || os.Args[1] != "attack" {
		return
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	}
	how, known := attacks[os.Args[2]]
	if !known {
		fmt.Println("no such attack")
		os.Exit(1)
	}
	said := map[string]bool{}
	for round := 1; ; round++ {
		if saw := how(os.Args[3]); !said[saw] {
			said[saw] = true
			fmt.Printf("round %d: %s\n", round, saw)
		}
	}
}

var attacks = map[string]func(addr string) string{
	"etcd":        func(addr string) string { return useEtcdClient("http://"+addr, nil) },
	"etcdtls":     func(addr string) string { return useEtcdClient("https://"+addr, &tls.Config{InsecureSkipVerify: true}) },
	"nocert":      func(addr string) string { return tlsHandshake(addr, &tls.Config{InsecureSkipVerify: true}) },
	"othercert":   func(addr string) string { return tlsHandshake(addr, forgedCertificate(addr)) },
	"slow":        slowHandshakes,
	"connections": func(addr string) string { return crowd(addr, 10000) },
	"garbage":     sendRandomBytes,
}

// attackNames are their names, sorted.
func attackNames() []string { return slices.Sorted(maps.Keys(attacks)) }

// answerTimeout is how long an attacker waits for an answer, much longer than the store does for one.
const answerTimeout = 20 * time.Second

// useEtcdClient reads and writes with etcd's own client.
func useEtcdClient(endpoint string, cfg *tls.Config) string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, TLS: cfg, Logger: zap.NewNop(), DialTimeout: time.Second})
	if err != nil {
		return "no client: " + words(err)
	}
	defer client.Close()
	_, errGet := client.Get(ctx, "/rdzv", clientv3.WithPrefix())
	_, errPut := client.Put(ctx, "/rdzv/v1/x", "y")
	if errGet == nil || errPut == nil {
		return "got in: etcd has answered"
	}
	return words(errGet)
}

// tlsHandshake makes a TLS connection, and reads what the other end says after it.
func tlsHandshake(addr string, cfg *tls.Config) string {
	raw, err := net.DialTimeout("tcp", addr, answerTimeout)
	if err != nil {
		return words(err)
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(answerTimeout))
	conn := tls.Client(raw, cfg)
	if err := conn.Handshake(); err != nil {
		return "handshake: " + words(err)
	}
	text := make([]byte, 64)
	if n, err := conn.Read(text); err != nil {
		return "after the handshake: " + words(err)
	} else {
		return fmt.Sprintf("got in: it says %q", text[:n])
	}
}

// forgedCertificate has all that the store shows of itself in its certificate, signed with another key.
func forgedCertificate(addr string) *tls.Config {
	names := []string{"x"}
	raw, err := net.DialTimeout("tcp", addr, answerTimeout)
	if err == nil {
		raw.SetDeadline(time.Now().Add(answerTimeout))
		conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
		if conn.Handshake() == nil {
			names = conn.ConnectionState().PeerCertificates[0].DNSNames
		}
		raw.Close()
	}
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IsCA:        true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, _ := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	own := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return &tls.Config{
		InsecureSkipVerify: true, ServerName: names[0],
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil },
	}
}

// slowHandshakes begins 300 handshakes and sends a byte of each every half second.
func slowHandshakes(addr string) string {
	var all sync.WaitGroup
	ends := make(chan string, 300)
	for range 300 {
		all.Go(func() {
			conn, err := net.DialTimeout("tcp", addr, answerTimeout)
			if err != nil {
				ends <- words(err)
				return
			}
			defer conn.Close()
			ends <- sendSlowly(conn)
		})
	}
	all.Wait()
	close(ends)
	return most(ends)
}

func sendSlowly(conn net.Conn) string {
	start := []byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}
	begin := time.Now()
	for i := range 40 {
		if _, err := conn.Write([]byte{start[i%len(start)]}); err != nil {
			return "thrown out"
		}
		conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		if _, err := conn.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return "thrown out"
		}
	}
	return fmt.Sprintf("got in: still there after %v", time.Since(begin))
}

// crowd opens many connections and says nothing on any, until all are closed at the other end.
func crowd(addr string, n int) string {
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range n {
		conn, err := net.DialTimeout("tcp", addr, answerTimeout)
		if err != nil {
			return "not all at once: " + words(err)
		}
		conns = append(conns, conn)
	}
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(answerTimeout))
		if got, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) || len(got) > 0 {
			return fmt.Sprintf("got in: a silent connection stands (%q, %v)", got, err)
		}
	}
	return fmt.Sprintf("all %d thrown out", n)
}

// sendRandomBytes sends random bytes, some that begin as TLS does.
func sendRandomBytes(addr string) string {
	conn, err := net.DialTimeout("tcp", addr, answerTimeout)
	if err != nil {
		return words(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(answerTimeout))
	bytes := make([]byte, 4096)
	rand.Read(bytes)
	if bytes[0]&1 == 0 {
		copy(bytes, []byte{0x16, 3, 1, 0x0f, 0})
	}
	_, _ = conn.Write(bytes)
	got, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "got in: the connection stands"
	}
	if len(got) > 0 && got[0] != 0x15 { // an alert is TLS's way to say no
		return fmt.Sprintf("got in: it says %q", got)
	}
	return "thrown out"
}

// most is what most of the ends were.
func most(ends <-chan string) string {
	counts := map[string]int{}
	best := ""
	for end := range ends {
		if counts[end]++; counts[end] > counts[best] || strings.HasPrefix(end, "got in") {
			best = end
		}
	}
	return best
}

// words is an error without the numbers that differ from try to try.
func words(err error) string {
	text := err.Error()
	for _, known := range []string{
		"certificate required", "unknown certificate authority", "bad certificate", "unexpected message", "connection reset by peer",
		"connection refused", "i/o timeout", "deadline exceeded", "error reading server preface", "EOF", "broken pipe",
	} {
		if strings.Contains(text, known) {
			return known
		}
	}
	return text
}
