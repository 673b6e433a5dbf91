// Package sharedstore runs the store of "rdzv store", which many jobs of one user share. No agent
// hosts it: agents find it by --store, are admitted with the user's token, and elect the leader of
// each job as in any other etcd (package rdzv). It keeps nothing when it ends.
package sharedstore

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/internal/procfs"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/secret"
	"rdzv/rdzv/store"
)

// Config is how the store is run.
type Config struct {
	Env      map[string]string // of this process: HOME, XDG_RUNTIME_DIR, TMPDIR
	Listen   string            // HOST, :PORT or HOST:PORT; "" is all addresses of this host
	Networks []string          // see meet.CheckNet
	// PortLow and PortHigh are the range of agents' --port-range, of which a port is used if Listen
	// has none.
	PortLow, PortHigh int
	Token, TokenFile  string

	// Failed is called if etcd cannot continue, for example because the disk is full. It must end
	// the process.
	Failed func(error)
	// Refused is called for an agent, once for each host, that has another token or version. Its
	// calls may be concurrent.
	Refused func(meet.Rejected)
}

// Server is a running store.
type Server struct {
	Addrs []netip.AddrPort // on which it listens
	Store string           // value of --store for agents
	Token string           // where the token is: a path, or "RDZV_TOKEN"

	gate  *meet.SharedGate
	store *store.Server
}

// Start starts a store. ctx bounds only the start.
func Start(ctx context.Context, c Config) (*Server, error) {
	dir, err := host.RuntimeDir(c.Env)
	if err != nil {
		return nil, err
	}
	tokens := secret.TokenSource{
		File: c.TokenFile, Text: c.Token, Home: host.Home(c.Env), UID: os.Geteuid(),
	}
	gate, err := meet.ListenShared(ctx, meet.Config{
		Rank: -1, Size: -1, LocalSize: -1, Nodes: -1, Host: host.Name(), Proc: procfs.System,
		Net: c.Networks, PortLo: c.PortLow, PortHi: c.PortHigh,
		Token: func() ([]byte, error) { return secret.LoadToken(tokens) },
		Notify: func(n meet.Notice) {
			if refused, is := n.(meet.Rejected); is {
				c.Refused(refused)
			}
		},
	}, c.Listen)
	if err != nil {
		return nil, err
	}
	s, err := store.Start(ctx, store.Config{Dir: dir, Shared: true, Failed: c.Failed})
	if err != nil {
		gate.Close()
		return nil, err
	}
	s.Serve(gate, nil)
	return &Server{
		Addrs: gate.Addrs, Store: address(c.Listen, gate.Addrs[0]), Token: tokens.Place(),
		gate: gate, store: s,
	}, nil
}

// address is how agents name the store: by the name that was given, or that of this host, unless
// only this host can reach it.
func address(listen string, first netip.AddrPort) string {
	name, _, _ := meet.ParseListen(listen) // it was used for listening
	switch {
	case name != "":
	case first.Addr().IsLoopback():
		name = "localhost"
	default:
		name = host.Name()
	}
	return net.JoinHostPort(name, strconv.Itoa(int(first.Port())))
}

// Jobs is the number of jobs that have keys in the store.
func (s *Server) Jobs(ctx context.Context) (int, error) {
	found, err := s.store.Client().Get(ctx, "/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return 0, fmt.Errorf("cannot count the jobs: %w", err)
	}
	jobs := 0
	for _, kv := range found.Kvs {
		if strings.HasSuffix(string(kv.Key), "/run") {
			jobs++
		}
	}
	return jobs, nil
}

// Close ends the store. Jobs that wait for agents wait until there is another one, those whose
// workers run end.
func (s *Server) Close() error {
	s.gate.Close()
	return s.store.Close()
}
