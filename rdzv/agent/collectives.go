package agent

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdzv/rdzv/agent/internal/ras"
	"rdzv/rdzv/masterport"
	"rdzv/rdzv/status"
)

// NCCL's RAS service of any worker knows how far all ranks of the job are. Each agent gives its
// workers an address of their own for it, so that jobs on one host do not answer for each other.

// rasVariable is where NCCL reads the address.
const rasVariable = "NCCL_RAS_ADDR"

// holdRAS reserves an address for the RAS service of this agent's workers in this attempt. It ends
// with release.
func (w *workers) holdRAS() (release func()) {
	if _, given := w.local.env[rasVariable]; given {
		return func() {}
	}
	port, err := masterport.HoldOne()
	if err != nil {
		w.events.diagnose(Verbose, err) // they share NCCL's own with others
		return func() {}
	}
	w.rasAddr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port.Port()))
	return func() { port.Close() }
}

// noteRAS notes the address that a worker has got.
func (w *workers) noteRAS(environ []string) {
	for _, entry := range environ {
		if addr, is := strings.CutPrefix(entry, rasVariable+"="); is {
			w.rasAddr = addr
		}
	}
}

// asksRAS tells whether this agent is one of those that ask it: those of the first, the middle and
// the last rank. One is enough, but its worker may hang.
func (w *workers) asksRAS() bool {
	seat, size := w.world.Seat, w.world.Size
	return size > 1 && slices.ContainsFunc([]int{0, size / 2, size - 1}, func(rank int) bool {
		return seat.Rank <= rank && rank < seat.Rank+seat.Slots
	})
}

var errNoRAS = errors.New("no RAS service is asked")

// maxLaunched is of how many ranks an answer has counts: it has a limit.
const maxLaunched = 1 << 14

// collectivesOf is what a report says to rdzv status, nil if it says nothing.
func collectivesOf(r ras.Report, world int) *status.Collectives {
	text := r.Lag(world).Text
	if text == "" {
		return nil
	}
	c := &status.Collectives{Text: text}
	if world <= maxLaunched {
		c.Launched = r.Launched(world)
	}
	return c
}

// The time limits of questions: of one for a user, and of one that nobody waits for.
const (
	rasWait     = time.Second
	rasTimeout  = 2500 * time.Millisecond
	rasPatience = 3 * time.Second
	rasLimit    = 15 * time.Second
)

// askRAS asks the service, within a limit.
func (w *workers) askRAS(ctx context.Context, wait, limit time.Duration) (ras.Report, error) {
	if !w.prepared.Load() || w.rasAddr == "" || !w.asksRAS() {
		return ras.Report{}, errNoRAS
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return ras.Ask(ctx, w.rasAddr, wait)
}
