package meet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"
)

func newID() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

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

// settle is how long an agent listens before it agrees to host, and yieldAfter how long it leaves those who knock waiting for the better one that
// it knows of, which may be out of reach.
const (
	settle     = 40 * time.Millisecond
	yieldAfter = 1500 * time.Millisecond
)

// forget is how long an agent counts that has not called any more.
const forget = 3 * time.Second

// callers is what one agent hears of the others.
type callers struct {
	session *session
	meeting *Meeting // where this agent would host
	radio   *radio   // nil where there is no multicast
	self    beacon

	mu     sync.Mutex
	better map[string]time.Time // by id: when one that is better was heard last
	voices map[string]bool      // every id that was heard
	offers chan offer
	last   time.Time // when this agent called
}

func electByBeacon(ctx context.Context, s *session, p *plan) (*Meeting, error) {
	m, err := s.bind(ctx, p)
	if err != nil {
		return nil, err
	}
	c := &callers{
		session: s, meeting: m, better: map[string]time.Time{}, voices: map[string]bool{}, offers: make(chan offer, maxOpen),
		self: beacon{public: publicHex(p.public), id: newID(), host: s.Host, addrs: m.Addrs},
	}
	if c.radio, err = s.tune(ctx); err != nil {
		s.Say(fmt.Sprintf("cannot look for the other nodes by multicast: %v", err))
	} else {
		c.radio.listen(c.hear)
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
	c.meeting.gate.decide(movedError{found.Addr})
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
		case !c.meeting.gate.waiting():
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
	c.self.hosting = true
	c.mu.Unlock()
	if err := c.meeting.serve(ctx); err != nil {
		return nil, err
	}
	c.meeting.background(func(ctx context.Context) {
		defer c.quit()
		c.call(ctx)
	})
	return c.meeting, nil
}

func (c *callers) quit() {
	if c.radio != nil {
		c.radio.close()
	}
}

// call sends this agent's beacon again and again.
func (c *callers) call(ctx context.Context) {
	for wait := callFirst; ctx.Err() == nil; wait = min(wait*3/2, callLast) {
		c.say()
		pause(ctx, wait)
	}
}

func (c *callers) say() {
	if c.radio == nil {
		return
	}
	c.mu.Lock()
	c.last = time.Now()
	packet := c.self.encode(c.meeting.plan.beacon)
	c.mu.Unlock()
	c.radio.send(packet)
}

// maxVoices bounds what an agent remembers of the others.
const maxVoices = 4096

// hear takes in one beacon. A new voice is answered at once, and whoever seeks hears from the host.
func (c *callers) hear(h heardPacket) {
	b, ok := c.session.understand(h, c.meeting.plan)
	if !ok || b.id == c.self.id {
		return
	}
	better, hosting, answer := c.weigh(b)
	switch {
	case better && hosting:
		c.meeting.move(b.addrs[0])
	case better:
		b.offer(h, c.offer)
	}
	if answer {
		c.say()
	}
}

// weigh says whether another agent is better, whether this one hosts, and whether to answer. A host is better than one that seeks; of two alike,
// the lower id is.
func (c *callers) weigh(b beacon) (better, hosting, answer bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	better = b.hosting && !c.self.hosting || b.hosting == c.self.hosting && b.id < c.self.id
	if better && len(c.better) < maxVoices {
		c.better[b.id] = time.Now()
	}
	fresh := !c.voices[b.id] && len(c.voices) < maxVoices
	if fresh {
		c.voices[b.id] = true
	}
	answer = (fresh || c.self.hosting && !b.hosting) && time.Since(c.last) > firstWait
	return better, c.self.hosting, answer
}

func (c *callers) offer(o offer) {
	select {
	case c.offers <- o:
	default: // it calls again
	}
}

var errChosen = errors.New("this agent is to host")
