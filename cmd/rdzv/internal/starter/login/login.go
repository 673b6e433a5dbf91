// Package login logs in to hosts with the user's ssh program, and starts this build of rdzv there.
package login

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"rdzv/cmd/rdzv/internal/starter/hosts"
	"rdzv/internal/hint"
)

// Options are what all logins have in common.
type Options struct {
	SSH     []string // the ssh program and its first arguments; {"ssh"} if it is empty
	Binary  string   // the executable of this process, for example /proc/self/exe
	Command []string // arguments of the remote rdzv, such as {"remote"}. Others can see them
	Environ []string // of ssh; nil: that of this process

	// Say gets the lines that ssh and the remote rdzv write to stderr once rdzv runs, one at a time;
	// each begins with "node2: ". nil: nobody
	Say func(line string)

	// Here is what the list calls this machine, which the caller starts without ssh; "": it is not
	// in the list. A host that turns out to be this machine is then refused.
	Here string

	Silence time.Duration // after which a host is given up before rdzv runs there; 0: 25 s
}

// starting is what the logins of one All share.
type starting struct {
	Options
	hosts  []hosts.Host
	binary *binary
	limits *limits
	first  *first
	saying sync.Mutex
}

// All logs in to all hosts at once, and returns when each of them runs rdzv or has failed. If any
// has failed, the error is a *Failures that has all of them, and the logins to the others have
// ended. The sessions are in the order of hs. They do not depend on ctx, which ends the starting
// alone.
func All(ctx context.Context, hs []hosts.Host, o Options) ([]*Session, error) {
	s, err := newStarting(hs, o)
	if err != nil {
		return nil, err
	}
	sessions := make([]*Session, len(hs))
	failures := make([]*Failure, len(hs))
	each := func(step func(i int)) {
		var all sync.WaitGroup
		for i := range hs {
			all.Go(func() { step(i) })
		}
		all.Wait()
	}
	each(func(i int) { sessions[i], failures[i] = s.prepare(ctx, hs[i]) })
	refuseRepeated(sessions, failures, o.Here)
	if failed(failures) == nil {
		each(func(i int) { failures[i] = sessions[i].run(ctx) })
	}
	err = failed(failures)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		return sessions, nil
	}
	each(func(i int) {
		if sessions[i] != nil {
			sessions[i].Close(context.Background())
		}
	})
	return nil, err
}

func newStarting(hs []hosts.Host, o Options) (*starting, error) {
	if len(o.SSH) == 0 {
		o.SSH = []string{"ssh"}
	}
	if o.Silence == 0 {
		o.Silence = 25 * time.Second
	}
	if _, err := exec.LookPath(o.SSH[0]); err != nil {
		return nil, hint.With(fmt.Errorf("cannot log in: %w", err),
			"install OpenSSH's client, or name another program: --ssh")
	}
	b, err := readBinary(o.Binary)
	if err != nil {
		return nil, err
	}
	return &starting{
		Options: o, hosts: hs, binary: b, limits: newLimits(len(hs)), first: newFirst(),
	}, nil
}

// prepare logs in to a host and brings rdzv there. It tries three times if the login is closed
// before authentication, as sshd does while many others log in.
func (s *starting) prepare(ctx context.Context, h hosts.Host) (*Session, *Failure) {
	for try := 1; ; try++ {
		session, failure := s.try(ctx, h)
		if failure == nil || !failure.refused || try == 3 {
			return session, failure
		}
		select {
		case <-ctx.Done():
			return nil, failure
		case <-time.After(pause(try)):
		}
	}
}

func (s *starting) try(ctx context.Context, h hosts.Host) (*Session, *Failure) {
	release := s.limits.enter(ctx, h, s.jump)
	defer release()
	session, err := s.login(h)
	if err != nil {
		return nil, &Failure{Host: h, Cause: err.Error()}
	}
	failure := session.greet(ctx)
	release() // it is no longer pending
	if failure == nil {
		failure = session.bring(ctx)
	}
	if failure != nil {
		session.Close(context.Background())
		return nil, failure
	}
	return session, nil
}

// refuseRepeated refuses hosts that are the same machine as one before them, or as this one.
func refuseRepeated(sessions []*Session, failures []*Failure, here string) {
	names := map[string]string{}
	if here != "" {
		names[thisMachine()] = here
	}
	for i, s := range sessions {
		if s == nil || s.machine == "" { // it has failed, or its kernel does not say
			continue
		}
		if name, repeated := names[s.machine]; repeated {
			failures[i] = s.failure("it is the same machine as "+name,
				"list each machine once, with the number of its workers")
			continue
		}
		names[s.machine] = s.Host.Name
	}
}
