package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/agent/sharedstore"
	"rdzv/rdzv/meet"
)

const storeHelp = `Usage: rdzv store [flags]

    rdzv store                                    on a login node
    rdzv exec --store login1 -- python3 main.py   in any number of jobs

Run a store for many of your jobs in the foreground, until SIGTERM or SIGINT.
Without it each job has a store of its own, in one of its agents. Use it where
agents do not find each other, but all of them can reach one host.

It prints the --store argument of the agents to stdout; --store HOST without the
port finds it too. Agents need the same token, which the store creates if there
is none. Jobs without a launcher that run the same command at the same time need
--job NAME.

When the store ends, jobs whose workers run end with 123. Jobs that still wait
for agents go on waiting, and join when it runs again.

{flags}

Exit status:
    0        stopped by SIGTERM, SIGINT or SIGHUP
    1        it could not start, or it failed later
    2        wrong usage
`

// storeFlags are the flags of store.
type storeFlags struct {
	options *options.Options
	listen  string
}

func newStoreFlags() *storeFlags { return &storeFlags{options: options.New()} }

// groups are the flags as the help shows them.
func (f *storeFlags) groups() []flags.Group {
	listen := flags.Flag("--listen ADDR", "HOST, :PORT or HOST:PORT (all addresses of this host, and "+
		"the first free port of those where agents search)", &f.listen)
	return []flags.Group{{NoEnv: true, Rows: []flags.Row{listen}}, {Rows: f.options.OfListener()}}
}

// store runs a store for many jobs until a signal.
func (a *app) store(args []string) int {
	o := newStoreFlags()
	rest, err := flags.Parse(o.options.Flags("store", o.groups()), args, a.env)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("cannot run store: unexpected argument %q", rest[0])
	}
	if err == nil {
		_, _, badListen := meet.ParseListen(o.listen)
		err = flags.Join(badListen, o.options.Check(a.env))
	}
	if err != nil {
		return a.usage(err, "store")
	}
	c := o.options.Config(a.process())
	ctx, stop := signal.NotifyContext(context.Background(),
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	s, err := sharedstore.Start(ctx, sharedstore.Config{
		Env: a.env, Listen: o.listen, Networks: c.Networks, PortLow: c.PortLow, PortHigh: c.PortHigh,
		Token: c.Token, TokenFile: c.TokenFile,
		Failed: func(err error) { os.Exit(a.fail(err)) },
		Refused: func(n meet.Rejected) {
			a.console.Warn("refused a connection: %s", n.String())
		},
	})
	if err != nil {
		stop()
		return a.fail(fmt.Errorf("cannot run store: %w", err))
	}
	code := announceStore(a, s)
	if code == codeOK {
		<-ctx.Done()
	}
	time.AfterFunc(agent.SentTwice, stop) // from then on a second signal kills this process
	return max(code, endStore(a, s))
}

// announceStore prints what agents need.
func announceStore(a *app, s *sharedstore.Server) int {
	addrs := make([]string, len(s.Addrs))
	for i, addr := range s.Addrs {
		addrs[i] = addr.String()
	}
	a.console.Info("store for all jobs of this user at %s", strings.Join(addrs, ", "))
	token := fmt.Sprintf("the token in %s: copy it to hosts that do not share this file", s.Token)
	if s.Token == "RDZV_TOKEN" {
		token = "the same RDZV_TOKEN"
	}
	a.console.Info("agents need %s", token)
	return a.print("--store " + s.Store + "\n")
}

// countTimeout bounds the question how many jobs use a store that ends.
const countTimeout = time.Second

func endStore(a *app, s *sharedstore.Server) int {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	if jobs, err := s.Jobs(ctx); err == nil && jobs > 0 {
		a.console.Warn("jobs in the store that ends: %d. Those that run end with exit code 123, "+
			"those that wait for agents wait until it runs again", jobs)
	}
	if err := s.Close(); err != nil {
		return a.fail(err)
	}
	return codeOK
}
