package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"rdzv/internal/pmitest"
	"rdzv/rdzv/secret"
)

// hydraConfig is the configuration of an agent under Hydra, with all ranks on one node.
func hydraConfig(t *testing.T, h *pmitest.Server, rank int, dir string) Config {
	c := config(t, rank, len(h.FDs))
	c.LocalSize = len(h.FDs)
	c.Env = map[string]string{
		"PMI_FD": strconv.Itoa(h.FDs[rank]), "PMI_RANK": strconv.Itoa(rank),
		"PMI_SIZE": strconv.Itoa(len(h.FDs)),
	}
	c.RuntimeDir = dir
	c.Proc = os.DirFS("/proc")
	c.Token = tokenNotNeeded(t)
	return c
}

// Three agents meet through PMI. They send finalize when they are closed and not before, because a
// worker may be an MPI program. A second agent in each task cannot use PMI, and meets with the
// contact that the first one has saved.
func TestHydra(t *testing.T) {
	for _, insecure := range []bool{false, true} {
		const size = 3
		dir, hydra := t.TempDir(), pmitest.Start(t, size)
		for round := range 2 {
			store := newFakeStore(t, "store")
			meetings := make([]*Meeting, size)
			var group sync.WaitGroup
			for rank := range size {
				host := noHost(t)
				if rank == 0 {
					host = store.host
				}
				c := hydraConfig(t, hydra, rank, dir)
				c.Insecure = insecure
				group.Go(func() { meetings[rank] = mustMeet(t, c, host) })
			}
			group.Wait()
			for rank, m := range meetings {
				if m.Hosting != (rank == 0) || (m.Key == nil) != insecure {
					t.Errorf("rank %d: %v, key %v", rank, m, m.Key)
				}
				if got := ask(t, m, "x"); got != "store x" {
					t.Errorf("rank %d got %q", rank, got)
				}
			}
			if len(hydra.Finished) != 0 && round == 0 {
				t.Error("finalize was sent before Close")
			}
			store.close()
			for _, m := range meetings {
				m.Close()
				m.Close() // has no effect
			}
			for range size {
				if round == 0 {
					<-hydra.Finished
				}
			}
		}
		if n := strings.Count(hydra.Received(), "cmd=init"); n != size {
			t.Errorf("init was sent %d times:\n%s", n, hydra.Received())
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 1 || !strings.HasPrefix(left[0].Name(), keeperPrefix) {
			t.Errorf("files in the runtime directory: %v, %v; want the keeper's", left, err)
		}
	}
}

// A keeper is killed between two agents of each task: on one node the second ones meet with the
// user's token, and rank 0 reports why. Agents on several nodes cannot, and say why.
func TestKeeperIsKilled(t *testing.T) {
	hydra, dir := pmitest.Start(t, 2), t.TempDir()
	c := hydraConfig(t, hydra, 0, dir)
	_, name, ok := keeperOf(&c)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: dir + "/" + name})
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	l.SetUnlinkOnClose(false)
	l.Close() // the file is what a killed keeper leaves
	store, notices := newFakeStore(t, "store"), make(chan Notice, 2)
	var group sync.WaitGroup
	for rank := range 2 {
		c := hydraConfig(t, hydra, rank, dir)
		c.Token = func() ([]byte, error) { return []byte("0123456789abcdef"), nil }
		c.Notify = func(n Notice) { notices <- n }
		group.Go(func() {
			if got := ask(t, mustMeet(t, c, store.host), "x"); got != "store x" {
				t.Errorf("rank %d got %q", rank, got)
			}
		})
	}
	group.Wait()
	want := "process rdzv-keeper, which had the key of this mpiexec's jobs, was killed or " +
		"stopped " +
		"(connect: connection refused)"
	if lost, _ := (<-notices).(KeeperLost); len(notices) != 0 || fmt.Sprint(lost.Err) != want {
		t.Errorf("notice %v, then %d others; want %s, from rank 0 only", lost, len(notices), want)
	}
	if received := hydra.Received(); received != "" {
		t.Errorf("requests to PMI, which has been finalized: %s", received)
	}
	c.Nodes, c.LocalSize = 2, 1
	if _, err := Meet(t.Context(), c, store.host); fmt.Sprint(err) != want {
		t.Errorf("Meet of one of two nodes: %v, want %s", err, want)
	}
}

// An agent sends finalize also if Meet fails or panics.
func TestFinalizeAfterFailure(t *testing.T) {
	hydra := pmitest.Start(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := Meet(ctx, hydraConfig(t, hydra, 1, t.TempDir()), noHost(t))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Meet of one of two ranks: %v", err)
	}
	if rank := <-hydra.Finished; rank != 1 {
		t.Errorf("rank %d sent finalize, want 1", rank)
	}
	func() {
		defer func() { recover() }()
		hydra = pmitest.Start(t, 1)
		panics := func(context.Context, net.Listener) error { panic("a bug") }
		Meet(t.Context(), hydraConfig(t, hydra, 0, t.TempDir()), panics)
	}()
	<-hydra.Finished
}

// If rank 0 cannot host, the other ranks fail without waiting.
func TestHydraRankZeroFails(t *testing.T) {
	hydra := pmitest.Start(t, 2)
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		broken := errors.New("no memory")
		fails := func(context.Context, net.Listener) error { return broken }
		_, err := Meet(t.Context(), hydraConfig(t, hydra, 0, t.TempDir()), fails)
		if !errors.Is(err, broken) {
			t.Errorf("rank 0: %v", err)
		}
	})
	_, err := Meet(t.Context(), hydraConfig(t, hydra, 1, t.TempDir()), noHost(t))
	if !errors.Is(err, errRank0) {
		t.Errorf("rank 1: %v", err)
	}
}

func TestHydraHasEnded(t *testing.T) {
	hydra := pmitest.Start(t, 1)
	syscall.Shutdown(hydra.FDs[0], syscall.SHUT_RDWR)
	_, err := Meet(t.Context(), hydraConfig(t, hydra, 0, t.TempDir()), noHost(t))
	if err == nil || !strings.Contains(err.Error(), "PMI") {
		t.Errorf("Meet: %v", err)
	}
}

// Again fails at once under Hydra, because a second barrier would wait forever.
func TestHydraMeetsOnce(t *testing.T) {
	hydra := pmitest.Start(t, 1)
	m := mustMeet(t, hydraConfig(t, hydra, 0, t.TempDir()), newFakeStore(t, "store").host)
	if _, err := m.Again(t.Context()); !errors.Is(err, errOnce) {
		t.Errorf("Again: %v, want errOnce", err)
	}
}

// An agent that is the task itself saves no contact, because no other agent follows it. An agent
// below a script does.
func TestContactIsSavedUnderScripts(t *testing.T) {
	hydra := pmitest.Start(t, 1)
	for name, c := range map[string]struct {
		parent int
		want   bool
	}{"task": {os.Getpid(), false}, "script": {1, true}} {
		t.Run(name, func(t *testing.T) {
			agent := hydraConfig(t, hydra, 0, t.TempDir())
			me, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", os.Getpid()))
			if err != nil {
				t.Fatal(err)
			}
			agent.PID = 1 << 30
			agent.Proc = fstest.MapFS{
				fmt.Sprintf("%d/stat", os.Getpid()): {Data: me},
				fmt.Sprintf("%d/stat", agent.PID): {Data: fmt.Appendf(nil,
					"%d (rdzv) S %d%s", agent.PID, c.parent, strings.Repeat(" 0", 30))},
			}
			var e cleanup
			addrs := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
			saveContact(&agent, contact{key: secret.NewKey(), addrs: addrs}, e.add)
			e.run()
			if p, err := savedContact(&agent); err != nil || (p != nil) != c.want {
				t.Errorf("savedContact = %v, %v", p, err)
			}
		})
	}
}
