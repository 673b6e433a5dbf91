package meet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"rdzv/rdzv/meet/internal/gate"
)

func orteConfig(t *testing.T, rank, size int) Config {
	c := config(t, rank, size)
	c.LocalSize = size
	c.Env = map[string]string{
		transports:                "0011223344556677-8899aabbccddeeff",
		"OMPI_MCA_orte_hnp_uri":   "1987379200.0;tcp://172.17.0.1,10.77.0.11:57987",
		"OMPI_MCA_ess_base_jobid": "1987379201",
	}
	c.Token = func() ([]byte, error) { t.Error("asked for the token"); return nil, errors.New("none") }
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
		for range 2 { // the verified connection, and a new one
			if got := ask(t, m, "hello"); got != "rank 0 hello" {
				t.Errorf("rank %d: %q", rank, got)
			}
		}
	}
}

// The variable is there under srun --mpi=pmix too, made from the job's number: no secret.
func TestTransportsAloneAreNoSecret(t *testing.T) {
	c := orteConfig(t, 1, 2)
	delete(c.Env, "OMPI_MCA_orte_hnp_uri")
	delete(c.Env, "OMPI_MCA_ess_base_jobid")
	if openMPI4(&c) {
		t.Error("taken for a rank of mpirun")
	}
}

// Two jobs whose launchers gave them the same number never meet.
func TestTwoJobsOfOneNumber(t *testing.T) {
	a, b := newFakeStore(t, "a"), newFakeStore(t, "b")
	other := func(rank int) Config {
		c := orteConfig(t, rank, 2)
		c.Env[transports] = "1111111111111111-2222222222222222"
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

// A store whose job is over is passed by: Again finds the next one, though the old one still
// answers.
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
			t.Errorf("insecure %t: %s", insecure, got)
		}
		next.Close()
		first.close()
		second.close()
		old.Close()
	}
}

// A store that is replaced on the same port is not the store that was found.
func TestDialKnowsTheInstance(t *testing.T) {
	first, second := newFakeStore(t, "first"), newFakeStore(t, "second")
	host := mustMeet(t, orteConfig(t, 0, 2), first.host)
	m := mustMeet(t, orteConfig(t, 1, 2), noHost(t))
	if got := ask(t, m, "x"); got != "first x" {
		t.Error(got)
	}
	first.close()
	host.Close()
	if again := mustMeet(t, orteConfig(t, 0, 2), second.host); again.Addr != host.Addr {
		t.Fatalf("the second store is on %s, not on %s", again.Addr, host.Addr)
	}
	if _, err := m.Dial(t.Context()); !errors.Is(err, errGone) {
		t.Errorf("Dial: %v", err)
	}
}

func TestNotFoundTellsWhatWasTried(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := Meet(ctx, orteConfig(t, 1, 2), noHost(t))
	var none *NotFoundError
	if !errors.As(err, &none) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Meet: %v", err)
	}
	if len(none.Tried) != sequenceLen || !strings.Contains(err.Error(), "this host 127.0.0.1 port ") || !strings.Contains(err.Error(), ": connection refused") {
		t.Errorf("%d tried: %v", len(none.Tried), err)
	}
	if strings.Count(err.Error(), "127.0.0.1") != 1 {
		t.Errorf("one address is told more than once: %v", err)
	}
}

func storeConfig(t *testing.T, dir, store string) Config {
	c := config(t, -1, -1)
	c.Nodes, c.Store, c.RuntimeDir = 2, store, dir
	return c
}

// Several agents on the host that --store names: one hosts. When it dies, another takes its place.
func TestStoreByName(t *testing.T) {
	dir := t.TempDir()
	const agents = 5
	meetings, stores := make([]*Meeting, agents), make([]*fakeStore, agents)
	var group sync.WaitGroup
	for i := range agents {
		stores[i] = newFakeStore(t, "store")
		group.Go(func() { meetings[i] = mustMeet(t, storeConfig(t, dir, "127.0.0.1"), stores[i].host) })
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

func TestNextAgentHostsWhenTheFirstIsGone(t *testing.T) {
	dir := t.TempDir()
	first, second := newFakeStore(t, "first"), newFakeStore(t, "second")
	a := mustMeet(t, storeConfig(t, dir, "localhost"), first.host)
	b := mustMeet(t, storeConfig(t, dir, "localhost"), second.host)
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
		t.Error("nobody hosts")
	}
	next.Close()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWrongTokenIsToldOnBothSides(t *testing.T) {
	dir := t.TempDir()
	host, joiner := newHeard(), newHeard()
	a := storeConfig(t, dir, "127.0.0.1")
	a.Notify = host.notify
	mustMeet(t, a, newFakeStore(t, "a").host)
	b := storeConfig(t, dir, "127.0.0.1")
	b.Host, b.Notify = "node2", joiner.notify
	b.Token = func() ([]byte, error) { return []byte("another token, 24 bytes."), nil }
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		if _, err := Meet(ctx, b, noHost(t)); !errors.Is(err, gate.ErrDifferentToken) && !strings.Contains(err.Error(), "has a different token") {
			t.Errorf("Meet: %v", err)
		}
	})
	const want = "node2 (127.0.0.1) has a different token: copy ~/.config/rdzv/token " +
		"from one node to the other, or start rdzv here with RDZV_JOIN=..."
	if n := waitFor[DifferentToken](t, host); n.Error() != want {
		t.Error(n)
	}
	waitFor[DifferentToken](t, joiner)
	cancel()
}

func TestOtherLineIsToldAtANamedPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	host, joiner := newHeard(), newHeard()
	a := storeConfig(t, t.TempDir(), l.Addr().String())
	a.Notify = host.notify
	mustMeet(t, a, newFakeStore(t, "a").host)

	b := storeConfig(t, t.TempDir(), strings.Replace(a.Store, "127.0.0.1", "node1", 1))
	b.Job, b.Host, b.Notify = "another line", "node2", joiner.notify
	b.Interfaces = func() ([]Interface, error) { return nil, nil }
	b.Resolve = func(context.Context, string) ([]netip.Addr, error) { return onLoopback[:1], nil }
	b.fill()
	p, err := namedStore(t.Context(), &b)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { newJoiner(&b, noHost(t)).meet(ctx, p, byRank) }) // as on another host, whose node1 is not itself
	if n := waitFor[DifferentCommand](t, host); n != (DifferentCommand{"node2", onLoopback[0]}) {
		t.Errorf("%+v", n)
	}
	const want = "node1 (127.0.0.1) runs a different command: " +
		"give both the same --job NAME, or each job its own port"
	if n := waitFor[DifferentCommand](t, joiner); n.Error() != want {
		t.Error(n)
	}
}
