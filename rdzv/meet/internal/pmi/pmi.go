// Package pmi is a client of PMI-1, the protocol by which the ranks of a job exchange short values
// through Hydra, the process manager of MPICH and Intel MPI.
//
// Package meet decides which values are exchanged.
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

// A Client speaks PMI-1 (the wire protocol of MPICH's "simple PMI") on the descriptor that Hydra
// passes to each rank: one line per request and one per reply.
//
// The descriptor is shared with the worker, which may be an MPI program that uses it after the
// agent. So the client never closes it, never makes it non-blocking, and sends finalize only when
// the agent ends. If a rank that has used PMI exits without finalize, Hydra kills the other ranks.
type Client struct {
	fd   int
	rest []byte // what was read after the last line
	kvs  string // name of the job's key-value space
}

// pollInterval is how often a wait for a reply checks whether its context has ended.
const pollInterval = 100 * time.Millisecond

// maxLine is the maximum length of a reply in bytes. Hydra limits values to 1024 bytes.
const maxLine = 4096

var errReply = errors.New("malformed PMI-1 reply")

// NotPassedError says that a process has the number of the descriptor, but not the descriptor: what
// runs it in a container has closed it. Another file of this process may have the number.
type NotPassedError struct {
	FD  int
	Err error
}

func (e *NotPassedError) Error() string {
	return fmt.Sprintf("cannot use PMI: descriptor %d (PMI_FD) is not the launcher's socket: %v",
		e.FD, e.Err)
}

func (e *NotPassedError) Unwrap() error { return e.Err }

// Hint returns a command with which podman passes the descriptor to a container.
func (e *NotPassedError) Hint() string {
	return "podman passes it as 3: mpiexec ... bash -c " +
		"'exec 3>&$PMI_FD; PMI_FD=3 exec podman run --preserve-fds 1 ...'"
}

// Start initialises PMI and reads the name of the job's key-value space. The Client is valid for
// Finalize even if Start fails, unless it is nil: with a *[NotPassedError].
func Start(ctx context.Context, fd int) (*Client, error) {
	if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return nil, &NotPassedError{fd, err}
	}
	p := &Client{fd: fd}
	const hello = "cmd=init pmi_version=1 pmi_subversion=1"
	if _, err := p.request(ctx, hello, "response_to_init"); err != nil {
		return p, err
	}
	reply, err := p.request(ctx, "cmd=get_my_kvsname", "my_kvsname")
	if err != nil {
		return p, err
	}
	if p.kvs = reply["kvsname"]; p.kvs == "" {
		return p, errReply
	}
	return p, nil
}

// Put stores a value for the other ranks. Neither key nor value may contain white space.
func (p *Client) Put(ctx context.Context, key, value string) error {
	line := fmt.Sprintf("cmd=put kvsname=%s key=%s value=%s", p.kvs, key, value)
	_, err := p.request(ctx, line, "put_result")
	return err
}

// Get returns the value that a rank has put, once Barrier has returned.
func (p *Client) Get(ctx context.Context, key string) (string, error) {
	reply, err := p.request(ctx, fmt.Sprintf("cmd=get kvsname=%s key=%s", p.kvs, key), "get_result")
	return reply["value"], err
}

// Barrier returns when all ranks of the job have called it.
func (p *Client) Barrier(ctx context.Context) error {
	_, err := p.request(ctx, "cmd=barrier_in", "barrier_out")
	return err
}

// finalizeTimeout limits the wait for the reply to finalize, which only confirms that Hydra has
// read the request.
const finalizeTimeout = time.Second

// Finalize sends the last request. It ignores errors: an MPI worker may have sent finalize before,
// and Hydra then no longer reads.
func (p *Client) Finalize() {
	ctx, cancel := context.WithTimeout(context.Background(), finalizeTimeout)
	defer cancel()
	p.request(ctx, "cmd=finalize", "finalize_ack")
}

// request sends one line and waits for a reply of the given kind.
func (p *Client) request(ctx context.Context, line, kind string) (map[string]string, error) {
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
		return nil, fmt.Errorf("cannot use PMI: got reply %q, want %q", reply["cmd"], kind)
	case reply["rc"] != "" && reply["rc"] != "0":
		return nil, fmt.Errorf("cannot use PMI: reply %s with rc=%s", kind, reply["rc"])
	}
	return reply, nil
}

// parse parses the fields of a reply. Their order differs between versions of Hydra; values contain
// no white space.
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

// readLine reads up to the next newline. What follows remains in p.rest.
func (p *Client) readLine(ctx context.Context) (string, error) {
	for buf := make([]byte, maxLine); ; {
		if line, rest, ok := bytes.Cut(p.rest, []byte("\n")); ok {
			p.rest = rest
			return string(line), nil
		}
		if len(p.rest) > maxLine {
			return "", errReply
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		readable := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(readable, int(pollInterval.Milliseconds()))
		if n > 0 {
			n, err = unix.Read(p.fd, buf)
			if n == 0 {
				return "", errors.New("the launcher has closed the connection")
			}
		}
		if err != nil && err != unix.EINTR {
			return "", err
		}
		p.rest = append(p.rest, buf[:max(n, 0)]...)
	}
}
