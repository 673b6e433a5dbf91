package pmi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Client speaks PMI-1 (MPICH's "simple PMI" wire protocol) on the descriptor that Hydra gives
// each rank: one line a question, one a reply.
//
// The descriptor is shared with the worker, which may be an MPI program that uses it after us. So
// it is never closed, never made non-blocking, and finalize is not sent before the agent leaves.
// What has used it and exits without finalize makes Hydra kill its peers.
type Client struct {
	fd   int
	rest []byte // read, but behind the last line taken
	kvs  string // name of the job's key-value space
}

// slice is how long one wait for a reply lasts before ctx is looked at.
const slice = 100 * time.Millisecond

// maxLine is the longest reply that is taken, in bytes. Hydra's own limit for a value is 1024.
const maxLine = 4096

var errReply = errors.New("not a reply of PMI-1")

// Start says hello, and learns the name of the job's key-value space.
func Start(ctx context.Context, fd int) (*Client, error) {
	p := &Client{fd: fd}
	if _, err := p.ask(ctx, "cmd=init pmi_version=1 pmi_subversion=1", "response_to_init"); err != nil {
		return p, err
	}
	reply, err := p.ask(ctx, "cmd=get_my_kvsname", "my_kvsname")
	if err != nil {
		return p, err
	}
	if p.kvs = reply["kvsname"]; p.kvs == "" {
		return p, errReply
	}
	return p, nil
}

func (p *Client) Put(ctx context.Context, key, value string) error {
	_, err := p.ask(ctx, fmt.Sprintf("cmd=put kvsname=%s key=%s value=%s", p.kvs, key, value), "put_result")
	return err
}

func (p *Client) Get(ctx context.Context, key string) (string, error) {
	reply, err := p.ask(ctx, fmt.Sprintf("cmd=get kvsname=%s key=%s", p.kvs, key), "get_result")
	return reply["value"], err
}

// Barrier returns when all ranks of the job have called it.
func (p *Client) Barrier(ctx context.Context) error {
	_, err := p.ask(ctx, "cmd=barrier_in", "barrier_out")
	return err
}

// finalizeTimeout is how long the last reply is waited for. It is only to be sure that the question
// was read.
const finalizeTimeout = time.Second

// Finalize is the last thing said. An MPI worker may have said it already, so nobody may be
// listening any more.
func (p *Client) Finalize() {
	ctx, cancel := context.WithTimeout(context.Background(), finalizeTimeout)
	defer cancel()
	p.ask(ctx, "cmd=finalize", "finalize_ack")
}

// ask sends one line and waits for the reply of the given kind.
func (p *Client) ask(ctx context.Context, line, kind string) (map[string]string, error) {
	if err := p.write([]byte(line + "\n")); err != nil {
		return nil, fmt.Errorf("cannot write to PMI: %w", err)
	}
	text, err := p.readLine(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s from PMI: %w", kind, err)
	}
	reply, err := parse(text)
	switch {
	case err != nil:
		return nil, err
	case reply["cmd"] != kind:
		return nil, fmt.Errorf("cannot use PMI: it answers %q, not %q", reply["cmd"], kind)
	case reply["rc"] != "" && reply["rc"] != "0":
		return nil, fmt.Errorf("cannot use PMI: %s with rc=%s", kind, reply["rc"])
	}
	return reply, nil
}

// parse reads the fields of a reply. Their order differs between versions of Hydra, and values end
// at the blank.
func parse(line string) (map[string]string, error) {
	reply := map[string]string{}
	for field := range strings.FieldsSeq(line) {
		name, value, ok := strings.Cut(field, "=")
		if ok && name != "" {
			reply[name] = value
		}
	}
	if reply["cmd"] == "" {
		return nil, errReply
	}
	return reply, nil
}

func (p *Client) write(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(p.fd, b)
		if err != nil && err != unix.EINTR {
			return err
		}
		b = b[max(n, 0):]
	}
	return nil
}

func (p *Client) readLine(ctx context.Context) (string, error) {
	for {
		if i := bytes.IndexByte(p.rest, '\n'); i >= 0 {
			line := string(p.rest[:i])
			p.rest = p.rest[i+1:]
			return line, nil
		}
		if len(p.rest) > maxLine {
			return "", errReply
		}
		if err := p.readable(ctx); err != nil {
			return "", err
		}
		buf := make([]byte, maxLine)
		n, err := unix.Read(p.fd, buf)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return "", err
		case n == 0:
			return "", errors.New("the launcher has closed it")
		}
		p.rest = append(p.rest, buf[:max(n, 0)]...)
	}
}

func (p *Client) readable(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, int(slice.Milliseconds()))
		if err != nil && err != unix.EINTR {
			return err
		}
		if n > 0 {
			return nil
		}
	}
	return context.Cause(ctx)
}
