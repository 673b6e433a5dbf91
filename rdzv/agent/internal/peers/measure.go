package peers

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// asking is how many connections a client measures at the same time: more would slow each other.
const asking = 4

// Client measures the connections of a node. Its methods are safe for concurrent use.
type Client struct {
	key   Key
	now   func() time.Time
	turns chan struct{}
}

// NewClient returns a client with the key of the job and the clock of the node.
func NewClient(key Key, now func() time.Time) *Client {
	return &Client{key, now, make(chan struct{}, asking)}
}

// Measured is the result of [Client.Measure]. Offset is that of the shortest round trip, in which
// it is most exact.
type Measured struct {
	RoundTrip time.Duration // the shortest of several
	Offset    time.Duration // by how much the other node's clock is ahead of this one's
}

var (
	errTimedOut = errors.New("connection timed out")
	errSilent   = errors.New("no answer")
	errStranger = errors.New("another program or another agent answered")
)

// Measure connects to the server of the agent with an ID, and takes at most 10 s. The error is a
// reason, without the address.
func (c *Client) Measure(ctx context.Context, addr, id string) (best Measured, err error) {
	ctx, cancel := context.WithTimeout(ctx, totalTime)
	defer cancel()
	dialer := net.Dialer{Timeout: connectTime}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return best, reason(err, errTimedOut)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-ctx.Done():
		return best, errSilent
	}
	for i := range roundTrips {
		m, err := c.ask(conn, id)
		if err != nil {
			return best, reason(err, errSilent)
		}
		if i == 0 || m.RoundTrip < best.RoundTrip {
			best = m
		}
	}
	return best, nil
}

// ask makes one round trip. The peer has read its clock in the middle of it, as far as is known.
func (c *Client) ask(conn io.ReadWriter, id string) (m Measured, err error) {
	request, answer := purposes(id)
	nonce := newNonce()
	message := c.key.Seal(request, nonce)
	sent := c.now()
	if _, err := conn.Write(message); err != nil {
		return m, err
	}
	sealed := make([]byte, answerLen)
	if _, err := io.ReadFull(conn, sealed); err != nil {
		return m, err
	}
	m.RoundTrip = c.now().Sub(sent)
	text, err := c.key.Open(answer, sealed)
	if err != nil || !bytes.Equal(text[:nonceLen], nonce) {
		return m, errStranger
	}
	read := time.Unix(0, int64(binary.BigEndian.Uint64(text[nonceLen:])))
	m.Offset = read.Sub(sent.Add(m.RoundTrip / 2).Round(0))
	return m, nil
}

// reason is why a connection failed, in the words of the system. A program that does not know the
// key closes the connection.
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
