package nodecheck

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"rdzv/rdzv/check"
)

// A firewall lets a connection wait for connectTime. Then the other end has until MeasureTime to
// answer, because a busy host is none that workers cannot reach.
const (
	connectTime = 2 * time.Second
	MeasureTime = 10 * time.Second
)

// asking is how many connections are measured at the same time: more would slow each other.
const asking = 4

// roundTrips is how many there are on each connection. The shortest one counts.
const roundTrips = 5

// Measure measures connections to agents, until ctx ends or for at most MeasureTime.
func Measure(ctx context.Context, targets []check.Target) []check.Connection {
	ctx, cancel := context.WithTimeout(ctx, MeasureTime)
	defer cancel()
	connections, turns := make([]check.Connection, len(targets)), make(chan struct{}, asking)
	var wg sync.WaitGroup
	for i, to := range targets {
		c := &connections[i]
		c.To, c.Addr = to.ID, to.Addr
		wg.Go(func() {
			if err := measure(ctx, turns, c); err != nil {
				*c = check.Connection{To: c.To, Addr: c.Addr, Error: err.Error()}
			}
		})
	}
	wg.Wait()
	return connections
}

var (
	errTimedOut = errors.New("connection timed out")
	errSilent   = errors.New("no answer")
	errStranger = errors.New("another program or another agent answered")
)

// measure measures a connection. The error is a reason, without the address.
func measure(ctx context.Context, turns chan struct{}, c *check.Connection) error {
	dialer := net.Dialer{Timeout: connectTime}
	conn, err := dialer.DialContext(ctx, "tcp", c.Addr)
	if err != nil {
		return reason(err, errTimedOut)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-ctx.Done():
		return errSilent
	}
	for range roundTrips {
		if err := ask(conn, c); err != nil {
			return reason(err, errSilent)
		}
	}
	return nil
}

// ask makes one round trip, and notes it if it is the shortest, in which the difference between the
// clocks is most exact: the other agent has read its clock in the middle, as far as is known.
func ask(conn io.ReadWriter, c *check.Connection) error {
	request, want := halves(c.To)
	answer := make([]byte, len(want)+clockLen)
	sent := time.Now()
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	took := time.Since(sent)
	id, clock := answer[:len(want)], answer[len(want):]
	if string(id) != want {
		return errStranger
	}
	if c.RoundTrip == 0 || took < c.RoundTrip {
		read := time.Unix(0, int64(binary.BigEndian.Uint64(clock)))
		c.RoundTrip, c.Offset = took, read.Sub(sent.Add(took/2).Round(0))
	}
	return nil
}

// reason is why a connection failed, in the words of the system. An agent closes the connection of
// a request that is not for it.
func reason(err, timedOut error) error {
	var errno syscall.Errno
	var network net.Error
	switch {
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, net.ErrClosed), errors.Is(err, context.Canceled):
		return timedOut
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET):
		return errStranger
	case errors.As(err, &errno):
		return errno
	}
	return err
}
