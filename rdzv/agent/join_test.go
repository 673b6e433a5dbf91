package agent

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/pmitest"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/presence"
)

// meetByPMI returns the meeting of rank 1 of two after the store has been closed.
func meetByPMI(t *testing.T, hydra *pmitest.Server) *meet.Meeting {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	dir, proc := t.TempDir(), os.DirFS("/proc")
	noStore := func(context.Context, net.Listener) error { return nil }
	var meetings [2]*meet.Meeting
	var errs [2]error
	var all sync.WaitGroup
	for rank := range meetings {
		c := meet.Config{
			Launcher: "hydra", Rank: rank, Size: 2, LocalSize: 2, Nodes: 1, Job: t.Name(),
			Env:        map[string]string{"PMI_FD": strconv.Itoa(hydra.FDs[rank])},
			RuntimeDir: dir, Proc: proc, Host: "node1",
		}
		all.Go(func() { meetings[rank], errs[rank] = meet.Meet(ctx, c, noStore) })
	}
	all.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	conn, err := meetings[1].Dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	meetings[0].Close()
	if rank := <-hydra.Finished; rank != 0 {
		t.Fatalf("rank %d sent finalize, want 0", rank)
	}
	return meetings[1]
}

// An agent that cannot connect to the store closes the meeting, which sends finalize: Hydra kills
// the other ranks if a task exits without it.
func TestFailedJoinEndsMeeting(t *testing.T) {
	hydra := pmitest.Start(t, 2)
	l := &Local{Config: Config{PeerTimeout: presence.DefaultTimeout}}
	events := &reporter{events: func(Event) {}}
	m := &membership{local: l, events: events}
	m.conn = &connection{local: l, events: events, meeting: meetByPMI(t, hydra)}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&SignalError{Signal: syscall.SIGTERM})
	var signal *SignalError
	if err := m.joinAt(ctx, nil); !errors.As(err, &signal) {
		t.Errorf("joinAt: error %v, want %v", err, context.Cause(ctx))
	}
	late, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	select {
	case rank := <-hydra.Finished:
		if rank != 1 {
			t.Errorf("rank %d sent finalize, want 1", rank)
		}
	case <-late.Done():
		t.Errorf("rank 1 did not send finalize within 5s; the PMI server received\n%s",
			hydra.Received())
	}
}
