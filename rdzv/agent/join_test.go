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

// metByPMI returns the meeting of rank 1 of two with a store that is gone by now.
func metByPMI(t *testing.T, hydra *pmitest.Server) *meet.Meeting {
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
		t.Fatalf("rank %d has sent finalize", rank)
	}
	return meetings[1]
}

// An agent that cannot connect to the store it has found, be it the first or
// another one, closes the meeting: Hydra kills the other ranks when a task exits
// without having sent finalize.
func TestFailedJoinEndsMeeting(t *testing.T) {
	hydra := pmitest.Start(t, 2)
	l, events := &Local{Config: Config{PeerTimeout: presence.DefaultTimeout}}, newReporter(func(Event) {})
	m := &membership{local: l, events: events}
	m.conn = &connection{local: l, events: events, meeting: metByPMI(t, hydra)}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&SignalError{syscall.SIGTERM})
	var signal *SignalError
	if err := m.joinAt(ctx, nil); !errors.As(err, &signal) {
		t.Errorf("joinAt: %v, want %v", err, context.Cause(ctx))
	}
	late, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	select {
	case rank := <-hydra.Finished:
		if rank != 1 {
			t.Errorf("rank %d has sent finalize, want 1", rank)
		}
	case <-late.Done():
		t.Errorf("rank 1 has not sent finalize; PMI has heard\n%s", hydra.Received())
	}
}
