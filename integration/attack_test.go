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
)

// runAttack connects to the store's port without the key, again and again until it is killed:
//
//	attack KIND ADDR:PORT
//
// It prints "round N: ..." for each result that it did not have before. That of an attack that
// succeeds begins with success.
func runAttack(args []string) int {
	attack, found := attacks[args[0]]
	if !found {
		attack, found = tokenAttacks[args[0]]
	}
	if !found {
		return reportError(fmt.Errorf("unknown attack %q", args[0]))
	}
	raiseFileLimit()
	printed := map[string]bool{}
	for round := 1; ; round++ {
		if result := attack(args[1]); !printed[result] {
			printed[result] = true
			fmt.Printf("round %d: %s\n", round, result)
		}
	}
}

const success = "success: "

var anyServer = &tls.Config{InsecureSkipVerify: true}

var attacks = map[string]func(addr string) string{
	"etcd":        func(addr string) string { return useEtcdClient("http://"+addr, nil) },
	"etcdtls":     func(addr string) string { return useEtcdClient("https://"+addr, anyServer) },
	"nocert":      func(addr string) string { return tlsHandshake(addr, anyServer) },
	"othercert":   func(addr string) string { return tlsHandshake(addr, forgedCertificate(addr)) },
	"slow":        slowHandshakes,
	"connections": func(addr string) string { return openConnections(addr, 10000) },
	"garbage":     sendRandomBytes,
}

func attackNames() []string { return slices.Sorted(maps.Keys(attacks)) }

// answerTimeout is how long an attack waits for an answer. The store waits much less for a client.
const answerTimeout = 20 * time.Second

// useEtcdClient reads and writes with etcd's own client.
func useEtcdClient(endpoint string, cfg *tls.Config) string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, TLS: cfg, Logger: zap.NewNop(), DialTimeout: time.Second,
	})
	if err != nil {
		return "no client: " + errorKind(err)
	}
	defer client.Close()
	_, errGet := client.Get(ctx, "/rdzv", clientv3.WithPrefix())
	_, errPut := client.Put(ctx, "/rdzv/v1/x", "y")
	if errGet == nil || errPut == nil {
		return success + "etcd has answered"
	}
	return errorKind(errGet)
}

// tlsHandshake makes a TLS connection, and reads what the store sends on it.
func tlsHandshake(addr string, cfg *tls.Config) string {
	raw, err := net.DialTimeout("tcp", addr, answerTimeout)
	if err != nil {
		return errorKind(err)
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(answerTimeout))
	conn := tls.Client(raw, cfg)
	if err := conn.Handshake(); err != nil {
		return "handshake: " + errorKind(err)
	}
	text := make([]byte, 64)
	n, err := conn.Read(text)
	if err != nil {
		return "after the handshake: " + errorKind(err)
	}
	return fmt.Sprintf("%sthe store has sent %q", success, text[:n])
}

// forgedCertificate has the names of the store's certificate, but is signed with another key.
func forgedCertificate(addr string) *tls.Config {
	names := []string{"x"}
	raw, err := net.DialTimeout("tcp", addr, answerTimeout)
	if err == nil {
		raw.SetDeadline(time.Now().Add(answerTimeout))
		conn := tls.Client(raw, anyServer)
		if conn.Handshake() == nil {
			names = conn.ConnectionState().PeerCertificates[0].DNSNames
		}
		raw.Close()
	}
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, _ := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	own := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return &tls.Config{
		InsecureSkipVerify: true, ServerName: names[0],
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return own, nil
		},
	}
}

// closed is the result of an attack whose connections the store has closed.
const closed = "connection closed"

// slowHandshakes starts 300 handshakes and sends a byte of each every half second.
func slowHandshakes(addr string) string {
	var all sync.WaitGroup
	results := make(chan string, 300)
	for range 300 {
		all.Go(func() {
			conn, err := net.DialTimeout("tcp", addr, answerTimeout)
			if err != nil {
				results <- errorKind(err)
				return
			}
			defer conn.Close()
			results <- sendSlowly(conn)
		})
	}
	all.Wait()
	close(results)
	return mostFrequent(results)
}

func sendSlowly(conn net.Conn) string {
	hello := []byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}
	start := time.Now()
	for i := range 40 {
		if _, err := conn.Write([]byte{hello[i%len(hello)]}); err != nil {
			return closed
		}
		conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		_, err := conn.Read(make([]byte, 1))
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return closed
		}
	}
	return fmt.Sprintf("%sthe connection is open after %v", success, time.Since(start))
}

// mostFrequent returns the most frequent result, or a success if there is one.
func mostFrequent(results <-chan string) (best string) {
	counts := map[string]int{}
	for result := range results {
		if strings.HasPrefix(best, success) {
			continue
		}
		counts[result]++
		if counts[result] > counts[best] || strings.HasPrefix(result, success) {
			best = result
		}
	}
	return best
}

// openConnections opens many connections, sends nothing, and waits until the store has closed all.
func openConnections(addr string, n int) string {
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range n {
		conn, err := net.DialTimeout("tcp", addr, answerTimeout)
		if err != nil {
			return "not all connected: " + errorKind(err)
		}
		conns = append(conns, conn)
	}
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(answerTimeout))
		got, err := io.ReadAll(c)
		if errors.Is(err, os.ErrDeadlineExceeded) || len(got) > 0 {
			return fmt.Sprintf("%sa silent connection is open (%q, %v)", success, got, err)
		}
	}
	return closed
}

// sendRandomBytes sends random bytes, every second time after the beginning of a TLS record.
func sendRandomBytes(addr string) string {
	conn, err := net.DialTimeout("tcp", addr, answerTimeout)
	if err != nil {
		return errorKind(err)
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
		return success + "the connection is open"
	}
	if len(got) > 0 && got[0] != 0x15 { // a TLS alert is a refusal
		return fmt.Sprintf("%sthe store has sent %q", success, got)
	}
	return closed
}

// errorKind is an error without the numbers that differ between attempts.
func errorKind(err error) string {
	text := err.Error()
	for _, known := range []string{
		"certificate required", "unknown certificate authority", "bad certificate",
		"unexpected message", "connection reset by peer", "connection refused", "i/o timeout",
		"deadline exceeded", "error reading server preface", "EOF", "broken pipe",
	} {
		if strings.Contains(text, known) {
			return known
		}
	}
	return text
}
