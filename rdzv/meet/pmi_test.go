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

func hydraConfig(t *testing.T, h *pmitest.Server, rank int, dir string) Config {
	c := config(t, rank, len(h.FDs))
	c.LocalSize = len(h.FDs)
	c.Env = map[string]string{"PMI_FD": strconv.Itoa(h.FDs[rank]), "PMI_RANK": strconv.Itoa(rank), "PMI_SIZE": strconv.Itoa(len(h.FDs))}
	c.RuntimeDir = dir
	c.Proc = os.DirFS("/proc")
	c.Token = func() ([]byte, error) { t.Error("asked for the token"); return nil, errors.New("none") }
	return c
}

// Three agents meet through PMI. None says finalize before it is closed, for its worker may be an
// MPI program; all do then. A second agent of each task finds PMI closed, and meets by what the
// first has remembered.
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
					t.Errorf("rank %d: %q", rank, got)
				}
			}
			if len(hydra.Finished) != 0 && round == 0 {
				t.Error("finalize before the end")
			}
			store.close()
			for _, m := range meetings {
				m.Close()
				m.Close() // says nothing more
			}
			for range size {
				if round == 0 {
					<-hydra.Finished
				}
			}
		}
		if n := strings.Count(hydra.Received(), "cmd=init"); n != size {
			t.Errorf("init was said %d times:\n%s", n, hydra.Received())
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("on disk: %v, %v", left, err)
		}
	}
}

func TestHydraIsToldOnFailure(t *testing.T) {
	hydra := pmitest.Start(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := Meet(ctx, hydraConfig(t, hydra, 1, t.TempDir()), noHost(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Meet alone: %v", err)
	}
	if rank := <-hydra.Finished; rank != 1 {
		t.Errorf("rank %d said finalize", rank)
	}
	func() {
		defer func() { recover() }()
		two := pmitest.Start(t, 1)
		hydra = two
		Meet(t.Context(), hydraConfig(t, two, 0, t.TempDir()), func(context.Context, net.Listener) error { panic("a bug") })
	}()
	<-hydra.Finished
}

// When rank 0 cannot host, the others need not wait to learn it.
func TestHydraRankZeroFails(t *testing.T) {
	hydra := pmitest.Start(t, 2)
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		broken := errors.New("no memory")
		_, err := Meet(t.Context(), hydraConfig(t, hydra, 0, t.TempDir()), func(context.Context, net.Listener) error { return broken })
		if !errors.Is(err, broken) {
			t.Errorf("rank 0: %v", err)
		}
	})
	if _, err := Meet(t.Context(), hydraConfig(t, hydra, 1, t.TempDir()), noHost(t)); !errors.Is(err, errRank0) {
		t.Errorf("rank 1: %v", err)
	}
}

func TestHydraIsGone(t *testing.T) {
	hydra := pmitest.Start(t, 1)
	syscall.Shutdown(hydra.FDs[0], syscall.SHUT_RDWR)
	if _, err := Meet(t.Context(), hydraConfig(t, hydra, 0, t.TempDir()), noHost(t)); err == nil || !strings.Contains(err.Error(), "PMI") {
		t.Errorf("Meet: %v", err)
	}
}

// Who looks for a store again hears at once that there is none: at a second barrier it would wait
// for ever.
func TestHydraMeetsOnce(t *testing.T) {
	hydra := pmitest.Start(t, 1)
	m := mustMeet(t, hydraConfig(t, hydra, 0, t.TempDir()), newFakeStore(t, "store").host)
	if _, err := m.Again(t.Context()); !errors.Is(err, errOnce) {
		t.Errorf("Again: %v", err)
	}
}

// The agent that is the task itself leaves nothing behind: no other comes after it. One below a
// script does.
func TestOnlyScriptsAreRemembered(t *testing.T) {
	hydra := pmitest.Start(t, 1)
	for name, c := range map[string]struct {
		parent int
		want   bool
	}{"task": {os.Getpid(), false}, "script": {1, true}} {
		t.Run(name, func(t *testing.T) {
			c2 := hydraConfig(t, hydra, 0, t.TempDir())
			me, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", os.Getpid()))
			if err != nil {
				t.Fatal(err)
			}
			c2.PID = 1 << 30
			c2.Proc = fstest.MapFS{
				fmt.Sprintf("%d/stat", os.Getpid()): {Data: me},
				fmt.Sprintf("%d/stat", c2.PID):      {Data: fmt.Appendf(nil, "%d (rdzv) S %d%s", c2.PID, c.parent, strings.Repeat(" 0", 30))},
			}
			var e ending
			remember(&c2, secret.NewKey(), addressesOf([]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1")}), e.onEnd)
			e.end()
			if p, err := remembered(&c2); err != nil || (p != nil) != c.want {
				t.Errorf("remembered: %v, %v", p, err)
			}
		})
	}
}
