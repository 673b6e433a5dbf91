package meet

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
)

func publicHex(public []byte) string { return hex.EncodeToString(public) }

// hand plans for agents that are started by hand and know nothing but the token.
//
// Each binds its listeners, calls out "seeking", and knocks at whoever is better: a host, else an agent with a lower id. Who is knocked at and
// knows nobody better hosts, and tells all who knocked to come in; who has found a better one sends them there. So the lowest id hosts
// when all start at once, and a host stays the host when a lower id comes later.
func (s *session) hand() (*plan, error) {
	p, err := s.planByToken()
	if err != nil {
		return nil, err
	}
	p.hosts, p.elect = false, electByBeacon
	p.hint = "start the same line on the other nodes; where the network has no multicast, give all the same --store HOST"
	return p, nil
}

var errChosen = errors.New("this agent is to host")

// settle is how long an agent listens before it agrees to host, and yieldAfter how long it leaves those who knock waiting for the better one that
// it knows of, which may be out of reach.
const (
	settle     = 40 * time.Millisecond
	yieldAfter = 1500 * time.Millisecond
)

func electByBeacon(ctx context.Context, s *session, p *plan) (*Meeting, error) {
	m, err := s.bind(ctx, p)
	if err != nil {
		return nil, err
	}
	c := newCallers(s, m)
	if c.radio, err = s.tune(ctx); err != nil {
		s.Say(fmt.Sprintf("cannot look for the other nodes by multicast: %v", err))
	} else {
		c.radio.Listen(c.hear)
	}
	found, err := c.elect(ctx)
	if err != nil || !found.Hosting {
		c.quit()
	}
	if err != nil {
		m.release()
		return nil, err
	}
	return found, nil
}

// elect returns when this agent hosts, or has found the host.
func (c *callers) elect(ctx context.Context) (*Meeting, error) {
	looking, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	var found *Meeting
	var err error
	done := make(chan struct{})
	group.Go(func() { c.call(looking) })
	group.Go(func() { found, err = c.knock(looking); close(done) })
	group.Go(func() { c.meeting.sayAlone(looking) })
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
	c.meeting.gate.SendTo(found.Addr)
	found.background(c.sendOn)
	return found, nil
}

// chosen waits until this agent has to host; false if it has found a host before, or ctx has ended.
func (c *callers) chosen(ctx context.Context, found <-chan struct{}) bool {
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
		case !c.meeting.gate.Waiting():
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(start) < settle:
		case !c.knowsBetter() || time.Since(since) > yieldAfter:
			return true
		}
	}
}

func (c *callers) knowsBetter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.better {
		if time.Since(t) < forget {
			return true
		}
	}
	return false
}

// knock tries the better ones.
func (c *callers) knock(ctx context.Context) (*Meeting, error) {
	p := *c.meeting.plan
	p.sources = []source{func(ctx context.Context, give func(offer)) {
		for {
			select {
			case o := <-c.offers:
				give(o)
			case <-ctx.Done():
				return
			}
		}
	}}
	return c.session.look(ctx, &p)
}

// sendOn tells those who still come here where the host is, for as long as beacons of this agent may be remembered.
func (c *callers) sendOn(ctx context.Context) {
	pause(ctx, forget)
	c.meeting.release()
}

// host starts the store here, and goes on calling, and listening for another that hosts too.
func (c *callers) host(ctx context.Context) (*Meeting, error) {
	c.mu.Lock()
	c.self.Hosting = true
	c.mu.Unlock()
	if err := c.meeting.serve(ctx); err != nil {
		return nil, err
	}
	c.meeting.background(func(ctx context.Context) {
		defer c.quit()
		c.call(ctx)
	})
	c.meeting.background(c.yield)
	return c.meeting, nil
}

// yield reports another host that is better, once it has proved to be one: a beacon may be an old
// one that somebody sends again. Whether the job moves there is not decided here.
func (c *callers) yield(ctx context.Context) {
	for {
		select {
		case b := <-c.rivals:
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

func (c *callers) proved(ctx context.Context, b beacon.Beacon) (netip.AddrPort, bool) {
	d, err := c.meeting.dialing()
	if err != nil {
		return netip.AddrPort{}, false
	}
	for _, addr := range b.Addrs {
		conn, greeted, err := d.Dial(ctx, addr)
		if err != nil {
			continue
		}
		conn.Close()
		return addr, greeted.ID != c.meeting.id && !c.session.excluded()[greeted.ID]
	}
	return netip.AddrPort{}, false
}
