package integration

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Connections that send a ClientHello and nothing else, and that are opened again as soon as they
// are closed, delay a job that is starting, but do not keep agents out of it.
func TestAttackHalfOpenHandshakes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	eight := []string{
		"10.77.0.201", "10.77.0.202", "10.77.0.203", "10.77.0.204",
		"10.77.0.205", "10.77.0.206", "10.77.0.207", "10.77.0.208",
	}
	c.hosts(append([]string{"alias", "3"}, eight...)...)
	connections := 1000
	if *attackLong {
		connections = 5000
	}
	alone := startDuringHalfOpen(t, c, 3, 0, nil)
	for name, test := range map[string]struct {
		host int
		from []string
	}{
		"one address":         {3, eight[:1]},
		"eight addresses":     {3, eight},
		"the agent's address": {2, []string{"10.77.0.12"}},
	} {
		t.Run(name, func(t *testing.T) {
			delay := max(0, startDuringHalfOpen(t, c, test.host, connections, test.from)-alone)
			attack := fmt.Sprintf("%d half-open handshakes from %s", connections, name)
			attackRow(t, attack, 2, delay, "the job started and succeeded")
		})
	}
}

// startDuringHalfOpen starts a job on hosts 1 and 2. When the store listens, a host opens the
// connections, and then the second agent starts. It returns the time until both workers run.
func startDuringHalfOpen(
	t *testing.T, c *cluster, host, connections int, from []string,
) time.Duration {
	t.Helper()
	p := c.newPlace(t)
	const port = "29888"
	line := rdzvExec([]string{"-v", "--nodes", "2", "--store", "node1", "--join-timeout", "30s",
		"--port-range", port + "-" + port}, worker("record", p.dir("job")))
	first := p.on(1, line...)
	first.waitFor("hosting the store at")
	if connections > 0 {
		attack := []string{self, "halfopen", "10.77.0.11:" + port, strconv.Itoa(connections)}
		attacker := p.on(host, append(attack, from...)...)
		defer func() {
			attacker.checkCode(0)
			lines, _ := attacker.output()
			t.Log(strings.Join(lines, "; "))
		}()
		attacker.waitFor("all have been opened")
	}
	second := p.on(2, line...)
	records(t, p.dir("job"), 2)
	took := time.Since(second.started)
	checkCodes(0, first, second)
	t.Logf("both workers ran %v after the start of the second agent", took)
	return took
}

// runHalfOpen keeps connections open on which it sends a ClientHello and nothing else. It opens
// them again when they are closed, until nobody listens there:
//
//	halfopen ADDR:PORT N LOCALADDR...
func runHalfOpen(args []string) int {
	raiseFileLimit()
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return reportError(err)
	}
	h := &halfOpen{address: args[0], hello: clientHello()}
	ended := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { h.keepOpen(net.ParseIP(args[2+i%(len(args)-2)])) })
	}
	go func() { all.Wait(); close(ended) }()
	tick := time.NewTicker(10 * time.Millisecond)
	for announced := false; ; {
		select {
		case <-tick.C:
			if !announced && h.opened.Load() >= int64(n) {
				fmt.Println("all have been opened")
				announced = true
			}
		case <-ended:
			fmt.Println(h.opened.Load(), "opened,", h.failed.Load(), "failed")
			return 0
		}
	}
}

// halfOpen counts the connections of runHalfOpen.
type halfOpen struct {
	address        string
	hello          []byte
	opened, failed atomic.Int64
}

// keepOpen keeps one connection open from a local address.
func (h *halfOpen) keepOpen(from net.IP) {
	dialer := &net.Dialer{Timeout: answerTimeout, LocalAddr: &net.TCPAddr{IP: from}}
	for {
		conn, err := dialer.Dial("tcp", h.address)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			return
		case err != nil:
			h.failed.Add(1)
			continue
		}
		_, _ = conn.Write(h.hello)
		h.opened.Add(1)
		_, _ = io.Copy(io.Discard, conn)
		conn.Close()
	}
}

// clientHello is the first message of a TLS client that makes the store compute a key.
func clientHello() []byte {
	ours, theirs := net.Pipe()
	go func() {
		_ = tls.Client(theirs, &tls.Config{
			InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
			CurvePreferences: []tls.CurveID{tls.CurveP256},
		}).Handshake()
	}()
	hello := make([]byte, 4096)
	n, _ := ours.Read(hello)
	ours.Close()
	return hello[:n]
}

// raiseFileLimit lets this process open as many files as it may.
func raiseFileLimit() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	}
}
