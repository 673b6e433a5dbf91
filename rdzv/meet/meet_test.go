package meet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/procfs"
	"rdzv/rdzv/meet/internal/gate"
)

// orteConfig is the configuration of an agent under mpirun of Open MPI 4, with all ranks on one
// node.
func orteConfig(t *testing.T, rank, size int) Config {
	c := config(t, rank, size)
	c.LocalSize = size
	c.Env = map[string]string{
		transports:                "0011223344556677-8899aabbccddeeff",
		"OMPI_MCA_orte_hnp_uri":   "1987379200.0;tcp://172.17.0.1,10.77.0.11:57987",
		"OMPI_MCA_ess_base_jobid": "1987379201",
	}
	c.Token = tokenNotNeeded(t)
	return c
}

func TestOpenMPIOneNode(t *testing.T) {
	const size = 4
	meetings := make([]*Meeting, size)
	store := newFakeStore(t, "rank 0")
	var group sync.WaitGroup
	for rank := range size {
		host := noHost(t)
		if rank == 0 {
			host = store.host
		}
		group.Go(func() { meetings[rank] = mustMeet(t, orteConfig(t, rank, size), host) })
	}
	group.Wait()
	for rank, m := range meetings {
		if m.Hosting != (rank == 0) || !m.Addr.Addr().IsLoopback() || m.Key == nil {
			t.Errorf("rank %d: %v, key %v", rank, m, m.Key)
		}
		for range 2 { // the connection of Meet, and a new one
			if got := ask(t, m, "hello"); got != "rank 0 hello" {
				t.Errorf("rank %d got %q", rank, got)
			}
		}
	}
}

// Under srun --mpi=pmix the variable is set too, but derived from the job id.
func TestTransportsWithoutMpirun(t *testing.T) {
	c := orteConfig(t, 1, 2)
	delete(c.Env, "OMPI_MCA_orte_hnp_uri")
	delete(c.Env, "OMPI_MCA_ess_base_jobid")
	if openMPI4(&c) {
		t.Error("openMPI4 = true")
	}
}

// Two jobs to which their launchers have given the same id do not meet.
func TestTwoJobsWithTheSameID(t *testing.T) {
	a, b := newFakeStore(t, "a"), newFakeStore(t, "b")
	other := func(rank int) Config {
		c := orteConfig(t, rank, 2)
		c.Env[transports] = "b83f02d71c6ae945-90fd27e35ab8614c"
		return c
	}
	mustMeet(t, orteConfig(t, 0, 2), a.host)
	mustMeet(t, other(0), b.host)
	if got := ask(t, mustMeet(t, other(1), noHost(t)), "x"); got != "b x" {
		t.Error(got)
	}
	if got := ask(t, mustMeet(t, orteConfig(t, 1, 2), noHost(t)), "x"); got != "a x" {
		t.Error(got)
	}
}

// Again ignores the store whose job has ended, although it still answers, and finds the next one.
func TestAgain(t *testing.T) {
	for _, insecure := range []bool{false, true} {
		first, second := newFakeStore(t, "first"), newFakeStore(t, "second")
		conf := func(rank int) Config {
			c := orteConfig(t, rank, 2)
			c.Insecure = insecure
			return c
		}
		old := mustMeet(t, conf(0), first.host)
		m := mustMeet(t, conf(1), noHost(t))
		mustMeet(t, conf(0), second.host)
		next, err := m.Again(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := ask(t, next, "x"); got != "second x" {
			t.Errorf("insecure %t: got %q", insecure, got)
		}
		next.Close()
		first.close()
		second.close()
		old.Close()
	}
}

// A new store of the job on the same port is not the store that was found.
func TestDialAfterStoreWasReplaced(t *testing.T) {
	first, second := newFakeStore(t, "first"), newFakeStore(t, "second")
	host := mustMeet(t, orteConfig(t, 0, 2), first.host)
	m := mustMeet(t, orteConfig(t, 1, 2), noHost(t))
	if got := ask(t, m, "x"); got != "first x" {
		t.Error(got)
	}
	first.close()
	host.Close()
	if again := mustMeet(t, orteConfig(t, 0, 2), second.host); again.Addr != host.Addr {
		t.Fatalf("the second store listens on %s, want %s", again.Addr, host.Addr)
	}
	if _, err := m.Dial(t.Context()); !errors.Is(err, errReplaced) {
		t.Errorf("Dial: %v, want errReplaced", err)
	}
}

func TestNotFoundErrorListsAddresses(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := Meet(ctx, orteConfig(t, 1, 2), noHost(t))
	var none *NotFoundError
	if !errors.As(err, &none) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Meet: %v", err)
	}
	if text := err.Error(); len(none.Tried) != sequenceLen ||
		!strings.Contains(text, "this host 127.0.0.1 (8 ports tried)") ||
		!strings.Contains(text, ": connection refused") {
		t.Errorf("%d addresses tried: %v", len(none.Tried), err)
	}
	if strings.Count(err.Error(), "127.0.0.1") != 1 {
		t.Errorf("an address is listed more than once: %v", err)
	}
}

func storeConfig(t *testing.T, store string) Config {
	c := config(t, -1, -1)
	c.Nodes, c.Store, c.Proc = 2, store, procfs.System
	return c
}

// Of several agents on the host that --store names, one hosts. Each has a runtime directory of its
// own.
func TestStoreByName(t *testing.T) {
	const agents = 5
	meetings, stores := make([]*Meeting, agents), make([]*fakeStore, agents)
	var group sync.WaitGroup
	for i := range agents {
		stores[i] = newFakeStore(t, "store")
		group.Go(func() {
			meetings[i] = mustMeet(t, storeConfig(t, "127.0.0.1"), stores[i].host)
		})
	}
	group.Wait()
	hosts := 0
	for i, m := range meetings {
		if m.Hosting {
			hosts++
			defer stores[i].close()
		}
		if got := ask(t, m, "x"); got != "store x" {
			t.Error(got)
		}
	}
	if hosts != 1 {
		t.Errorf("%d agents host", hosts)
	}
}

// If the agent that hosts has ended, another one on the host hosts.
func TestNextAgentHostsAfterTheFirst(t *testing.T) {
	first, second := newFakeStore(t, "first"), newFakeStore(t, "second")
	a := mustMeet(t, storeConfig(t, "localhost"), first.host)
	b := mustMeet(t, storeConfig(t, "localhost"), second.host)
	if !a.Hosting || b.Hosting {
		t.Fatalf("hosting: first %t, second %t", a.Hosting, b.Hosting)
	}
	first.close()
	a.Close()
	next, err := b.Again(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !next.Hosting {
		t.Error("the second agent does not host")
	}
	next.Close()
}

func TestDifferentTokenIsReportedByBoth(t *testing.T) {
	hosting, joining := newNotices(), newNotices()
	a := storeConfig(t, "127.0.0.1")
	a.Notify = hosting.add
	mustMeet(t, a, newFakeStore(t, "a").host)
	b := storeConfig(t, "127.0.0.1")
	b.Host, b.Notify, b.refusedTimeout = "node2", joining.add, 100*time.Millisecond
	b.Token = func() ([]byte, error) { return []byte("another token, 24 bytes."), nil }
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		_, err := Meet(ctx, b, noHost(t))
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.By.(DifferentToken).Addr != loopbackAddrs[0] {
			t.Errorf("Meet: %v", err)
		}
	})
	want := DifferentToken{Host: "node2", Addr: loopbackAddrs[0]}
	if n := waitFor[DifferentToken](t, hosting); n != want {
		t.Errorf("the host reported %+v, want %+v", n, want)
	}
	if n := waitFor[DifferentToken](t, joining); !n.Hosting {
		t.Errorf("the other agent reported %+v, want Hosting", n)
	}
}

// An agent whose host has refused it and ended waits some time for another host, and then gives up.
func TestRefusalEnds(t *testing.T) {
	s := &search{plan: &plan{}, refusedTimeout: time.Hour}
	one, two := &target{err: gate.ErrDifferentToken}, &target{err: gate.ErrDifferentToken}
	s.noteRefusal(one)
	first := s.refused
	s.noteRefusal(two)
	if s.refusedBy != one || s.refused == nil || s.refused != first {
		t.Error("the first refusal does not count")
	}
	one.err = syscall.ECONNREFUSED
	s.noteRefusal(one)
	ended := s.refused
	if s.noteRefusal(one); ended == first || s.refused != ended {
		t.Error("the time does not begin again, once, when the host has ended")
	}
	const want = "invalid IP has refused this agent and ended 1h0m0s ago"
	if got := s.refusal.Error(); got != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
	if s.noteRefusal(two); s.refusedBy != two || s.refusal.Ended {
		t.Error("the refusal of the next host does not count")
	}
	s = &search{plan: &plan{peers: &peers{}}}
	if s.noteRefusal(two); s.refusedBy != nil {
		t.Error("a refusal by another agent that searches counts")
	}
}

// A different job at an address that the user has specified is reported by both sides.
func TestDifferentCommandAtNamedPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	hosting, joining := newNotices(), newNotices()
	a := storeConfig(t, l.Addr().String())
	a.Notify = hosting.add
	mustMeet(t, a, newFakeStore(t, "a").host)

	b := storeConfig(t, strings.Replace(a.Store, "127.0.0.1", "node1", 1))
	b.Job, b.Host, b.Notify = "different command", "node2", joining.add
	b.Interfaces = func() ([]Interface, error) { return nil, nil } // node1 is another host
	b.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		return loopbackAddrs[:1], nil
	}
	b.setDefaults()
	p, _, err := namedStore(t.Context(), &b)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { newLocator(&b, noHost(t)).meet(ctx, p, byRank) })
	wantReport := DifferentCommand{"node2", loopbackAddrs[0]}
	if n := waitFor[DifferentCommand](t, hosting); n != wantReport {
		t.Errorf("the host reported %+v, want %+v", n, wantReport)
	}
	const want = "node1 (127.0.0.1) runs a different command or --nodes; " +
		"if both belong to one job, give them the same --job NAME"
	if n := waitFor[DifferentCommand](t, joining); n.String() != want {
		t.Error(n)
	}
}
