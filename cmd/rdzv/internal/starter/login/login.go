// Package login logs in to hosts with the user's ssh program, and starts this build of rdzv there.
package login

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"rdzv/cmd/rdzv/internal/starter/hosts"
)

// Options are what all logins have in common.
type Options struct {
	SSH     []string // the ssh program and its first arguments; {"ssh"} if it is empty
	Binary  string   // the executable of this process, for example /proc/self/exe
	Build   string   // its build ID: letters, digits, "-", "_", "."; "" is its SHA-256
	Command []string // arguments of the remote rdzv, such as {"remote"}. Others can see them
	Environ []string // of ssh

	// Stderr gets what ssh and the remote rdzv write to stderr once rdzv runs: one whole line per
	// Write, which begins with "node2: ". nil: nobody
	Stderr io.Writer

	// Here is what the list calls this machine, which the caller starts without ssh; "": it is not
	// in the list. A host that turns out to be this machine is then refused.
	Here string

	Silence time.Duration // after which a host is given up before rdzv runs there; 0: 30 s
}

// All logs in to all hosts at once, and returns when each of them runs rdzv or has failed. If any
// has failed, the error is a *Failures that has all of them, and the logins to the others have ended.
// The sessions are in the order of hs. They do not depend on ctx, which ends the starting alone.
func All(ctx context.Context, hs []hosts.Host, o Options) ([]*Session, error) {
	return nil, errors.New("not written yet")
}

// Session is an ssh process whose other end is the remote rdzv.
type Session struct {
	Host   hosts.Host
	Path   string         // of rdzv on the host
	Stdin  io.WriteCloser // of the remote rdzv
	Stdout io.Reader      // of the remote rdzv
}

// Wait waits until ssh has ended. Its error has what ssh or the remote rdzv last wrote to stderr.
// ssh may stay longer than the remote rdzv: until every process that has its output has ended.
func (s *Session) Wait() error { return nil }

// Close closes Stdin, ends ssh by SIGTERM, then by SIGKILL (at once if ctx is done), and returns
// when it has ended. A Read from Stdout then fails.
func (s *Session) Close(ctx context.Context) {}

// Failures are the hosts on which rdzv could not be started, in the order of the list.
type Failures struct{ List []Failure }

// Failure is why rdzv could not be started on a host.
type Failure struct {
	Host  hosts.Host
	Cause string // in ssh's words if it has any: Permission denied (publickey)
	Hint  string // what the user can do: ssh-copy-id node2; or ""
}

// Error has one line for each host.
func (f *Failures) Error() string {
	var lines []string
	for _, one := range f.List {
		lines = append(lines, "cannot reach "+one.Host.Name+": "+one.Cause)
	}
	return strings.Join(lines, "\n")
}

// Hint is what the user can do, one line for each kind of failure.
func (f *Failures) Hint() string { return "" }
