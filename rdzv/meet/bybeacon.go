package meet

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
)

var errChosen = errors.New("this agent is to host")

// settle is how long an agent listens before it agrees to host, and yieldAfter how long it leaves
// those who knock waiting for the better one that it knows of, which may be out of reach.
const (
	settle     = 40 * time.Millisecond
	yieldAfter = 1500 * time.Millisecond
)

// byBeacon lets the agents of one network decide, which know nothing of one another.
//
// Each binds its listeners, calls out "seeking", and knocks at whoever is better: a host, else an
// agent with a lower id. Who is knocked at and knows nobody better hosts, and tells all who knocked
// to come in; who has found a better one sends them there. So the lowest id hosts when all start at
// once, and a host stays the host when a lower id comes later.
func byBeacon(ctx context.Context, j *joiner, p *plan) (*Meeting, error) {
	c, err := newCandidate(ctx, j, p)
	if err != nil {
		return nil, err
	}
	found, err := c.elect(ctx)
	if err != nil || !found.Hosting {
		c.callers.quit()
	}
	if err != nil {
		c.meeting.release()
		return nil, err
	}
	return found, nil
}

// A candidate is an agent that would host, and looks for a better one.
type candidate struct {
	joiner  *joiner
	plan    *plan
	meeting *Meeting // where it would host
	callers *callers
}

// newCandidate listens, for others and for their beacons.
func newCandidate(ctx context.Context, j *joiner, p *plan) (*candidate, error) {
	m, err := j.bind(ctx, p)
	if err != nil {
		return nil, err
	}
	c := newCallers(p.multicast, j.strangers, m.Addrs)
	if c.socket, err = p.multicast.open(ctx); err != nil {
		j.config.Notify(NoMulticast{err})
	} else {
		c.socket.Receive(c.hear)
	}
	return &candidate{joiner: j, plan: p, meeting: m, callers: c}, nil
}

// elect returns when this agent hosts, or has found the host.
func (c *candidate) elect(ctx context.Context) (*Meeting, error) {
	looking, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	var found *Meeting
	var err error
	done := make(chan struct{})
	group.Go(func() { c.callers.call(looking) })
	group.Go(func() { found, err = c.knock(looking); close(done) })
	group.Go(func() { alone(looking, c.meeting, c.plan, c.joiner.config.Notify) })
	if c.chosen(looking, done) {
		cancel(errChosen)
		<-done
		if err != nil {
			return c.host(ctx)
		}
	}
	<-done
	if err != nil {
		return nil, err
	}
	c.meeting.gate.Redirect(found.Addr)
	found.tasks.run(c.sendOn)
	return found, nil
}

// chosen waits until this agent has to host; false if it has found a host before, or ctx has ended.
func (c *candidate) chosen(ctx context.Context, found <-chan struct{}) bool {
	start := time.Now()
	var since time.Time // somebody has been knocking
	check := time.NewTicker(firstWait)
	defer check.Stop()
	for {
		select {
		case <-found:
			return false
		case <-ctx.Done():
			return false
		case <-check.C:
		}
		switch {
		case !c.meeting.gate.HasWaiting():
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(start) < settle:
		case !c.callers.knowsBetter() || time.Since(since) > yieldAfter:
			return true
		}
	}
}

// knock tries the better ones.
func (c *candidate) knock(ctx context.Context) (*Meeting, error) {
	p := *c.plan
	p.sources = []source{c.callers.known}
	return c.joiner.look(ctx, &p)
}

// sendOn tells those who still come here where the host is, for as long as beacons of this agent
// may be remembered.
func (c *candidate) sendOn(ctx context.Context) {
	pause(ctx, forget)
	c.meeting.release()
}

// host starts the store here, and goes on calling, and listening for another that hosts too.
func (c *candidate) host(ctx context.Context) (*Meeting, error) {
	c.callers.becomeHost()
	if err := c.joiner.serve(ctx, c.meeting, c.plan); err != nil {
		return nil, err
	}
	c.meeting.tasks.run(func(ctx context.Context) {
		defer c.callers.quit()
		c.callers.call(ctx)
	})
	c.meeting.tasks.run(c.yield)
	return c.meeting, nil
}

// yield reports another host that is better, once it has proved to be one: a beacon may be an old
// one that somebody sends again. Whether the job moves there is not decided here.
func (c *candidate) yield(ctx context.Context) {
	for {
		select {
		case b := <-c.callers.rivals:
			if addr, ok := c.proved(ctx, b); ok {
				c.meeting.rival = addr
				close(c.meeting.betterHost)
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (c *candidate) proved(ctx context.Context, b beacon.Beacon) (netip.AddrPort, bool) {
	for _, addr := range b.Addrs {
		conn, greeted, err := c.meeting.dialer.Dial(ctx, addr)
		if err != nil {
			continue
		}
		conn.Close()
		return addr, greeted.ID != c.meeting.id && !slices.Contains(c.joiner.past, greeted.ID)
	}
	return netip.AddrPort{}, false
}
