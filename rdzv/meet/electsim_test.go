package meet

import (
	"container/heap"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
	"rdzv/rdzv/secret"
)

var (
	schedules     = flag.Int("schedules", 500, "how many schedules to run")
	firstSchedule = flag.Uint64("first", 0, "the seed of the first one")
)

// Whenever agents start, however long packets, connections, the agents themselves and the start of
// a store take, and whatever beacons of earlier jobs and of this one somebody sends again: one agent
// hosts, and all others find it.
func TestElectionSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := 0
		for seed := *firstSchedule; seed < *firstSchedule+uint64(*schedules); seed++ {
			s := newSchedule(seed)
			s.run()
			if err := s.check(); err != nil {
				t.Errorf("schedule %d: %v\n%s", seed, err, s.describe())
				if failed++; failed == 5 {
					break
				}
			}
		}
	})
}

// A schedule is the election of one job. All agents receive each other's beacons and can connect to
// each other. Of package meet, peers and search take part; connections are simulated.
type schedule struct {
	random   *rand.Rand
	begin    time.Time
	events   events
	sequence int
	agents   []*simulatedAgent
	lastAt   time.Duration // when the last agent starts
	maxLag   time.Duration // of a packet, and of an agent that does something
	loss     float64       // of beacons
	recorded [][]byte      // the packets that somebody sends again, to all
	interval time.Duration // between these; 0 if nobody does
}

const simulatedKey = "0123456789abcdef0123456789abcdef"

func newSchedule(seed uint64) *schedule {
	s := &schedule{random: rand.New(rand.NewPCG(seed, 0)), begin: time.Now()}
	s.maxLag = s.oneOf(time.Millisecond, 5*time.Millisecond, 20*time.Millisecond)
	s.interval = s.oneOf(0, 0, 30*time.Millisecond, 5*time.Millisecond)
	if s.random.IntN(4) == 0 {
		s.loss = 0.2
	}
	sizes := []int{2, 3, 3, 3, 4, 5, 8}
	size := sizes[s.random.IntN(len(sizes))]
	within := s.oneOf(5*time.Millisecond, 50*time.Millisecond, time.Second, 6*time.Second)
	order := s.random.Perm(size)
	for i := range size {
		start := s.upTo(within)
		if i > 0 && s.random.IntN(4) == 0 { // when another one may decide to host
			limit := s.oneOf(restTimeout, 2*restTimeout)
			start = s.agents[0].start + limit + s.upTo(150*time.Millisecond)
		}
		s.agents = append(s.agents, s.newAgent(order[i], start))
		s.lastAt = max(s.lastAt, start)
	}
	if s.interval > 0 {
		s.recordEarlierJobs()
		s.at(0, s.replay)
	}
	for _, a := range s.agents {
		s.at(a.start, a.begin)
	}
	return s
}

func (s *schedule) oneOf(list ...time.Duration) time.Duration {
	return list[s.random.IntN(len(list))]
}

func (s *schedule) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d)))
}

// lag is how long a packet takes, or an agent to do something.
func (s *schedule) lag() time.Duration { return s.upTo(s.maxLag) }

// recordEarlierJobs makes beacons of earlier agents, of the same hosts and of others: of hosts that
// no longer exist, or with addresses that another host has now.
func (s *schedule) recordEarlierJobs() {
	addrs := []netip.AddrPort{netip.MustParseAddrPort("10.9.9.9:1")}
	for _, a := range s.agents {
		addrs = append(addrs, a.addr)
	}
	for range 2 + s.random.IntN(20) {
		k := s.random.IntN(len(addrs)+1) - 1
		addr := addrs[s.random.IntN(len(addrs))]
		if 0 <= k && k < len(s.agents) && s.random.IntN(4) > 0 {
			addr = simulatedAddr(k)
		}
		rank := -1
		if s.random.IntN(8) == 0 {
			rank = s.random.IntN(3)
		}
		s.recorded = append(s.recorded, beacon.Beacon{
			Hosting: s.random.IntN(2) == 0, Public: simulatedPublic, ID: s.newID(rank, k).String(),
			Host: simulatedHost(k), Addrs: []netip.AddrPort{addr},
		}.Encode([]byte(simulatedKey)))
	}
}

var simulatedPublic = hex.EncodeToString(make([]byte, secret.PublicLen))

func simulatedHost(k int) string { return fmt.Sprint("node", 1+k) }

func simulatedAddr(k int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + k)}), 29600)
}

func (s *schedule) newID(rank, k int) (id gate.Instance) {
	order := orderOf(rank, simulatedHost(k))
	for i := copy(id[:], order[:]); i < len(id); i++ {
		id[i] = byte(s.random.IntN(256))
	}
	return id
}

// replay sends a recorded beacon to all, sometimes many.
func (s *schedule) replay() {
	n := 1
	if s.random.IntN(200) == 0 {
		n = 2 * maxDialing
	}
	for range n {
		packet := s.recorded[s.random.IntN(len(s.recorded))]
		for _, a := range s.agents {
			s.after(s.lag(), func() { a.receive(packet) })
		}
	}
	s.after(s.upTo(2*s.interval), s.replay)
}

// run simulates until all agents have met, but no longer than a job would wait.
func (s *schedule) run() {
	for len(s.events) > 0 && time.Since(s.begin) < 20*time.Second && !s.met() {
		e := heap.Pop(&s.events).(event)
		time.Sleep(time.Until(s.begin.Add(e.at)))
		e.f()
	}
}

func (s *schedule) met() bool {
	for _, a := range s.agents {
		if a.found == nil {
			return false
		}
	}
	return true
}

// check reports whether one agent hosts, all others have found it, and in time: half a second after
// the last agent has started and the store accepts connections, apart from beacons that are lost and
// addresses that do not answer.
func (s *schedule) check() error {
	var host *simulatedAgent
	for _, a := range s.agents {
		switch {
		case a.found == nil:
			return fmt.Errorf("%s has found none", a.host)
		case a.found != a:
		case host != nil:
			return fmt.Errorf("%s and %s host", host.host, a.host)
		default:
			host = a
		}
	}
	for _, a := range s.agents {
		atOnce := host.electedAt < host.start+restTimeout
		switch {
		case a.found != host:
			return fmt.Errorf("%s has found %s", a.host, a.found.host)
		case atOnce && before(a.id.String(), host.id.String()):
			return fmt.Errorf("%s hosts at once, and not %s", host.host, a.host)
		}
	}
	limit := time.Second / 2
	if s.interval > 0 {
		limit += peerTimeout
	}
	if s.loss > 0 {
		limit += 3 * beaconLast
	}
	if late := host.electedAt - s.lastAt; late > limit {
		return fmt.Errorf("elected after %v", late)
	}
	if late := time.Since(s.begin) - max(s.lastAt, host.admitsAt); late > limit {
		return fmt.Errorf("met after %v", late)
	}
	return nil
}

func (s *schedule) describe() (text string) {
	for _, a := range s.agents {
		text += fmt.Sprintf("%s: start %v", a.host, a.start)
		if a.electedAt > 0 {
			text += fmt.Sprintf(", elected %v, admits %v", a.electedAt, a.admitsAt)
		}
		if a.found != nil {
			text += ", found " + a.found.host
		}
		text += "\n"
	}
	return text
}

type event struct {
	at       time.Duration
	sequence int
	f        func()
}

type events []event

func (es events) Len() int      { return len(es) }
func (es events) Swap(i, j int) { es[i], es[j] = es[j], es[i] }
func (es *events) Push(e any)   { *es = append(*es, e.(event)) }
func (es events) Less(i, j int) bool {
	return es[i].at < es[j].at || es[i].at == es[j].at && es[i].sequence < es[j].sequence
}

func (es *events) Pop() any {
	last := len(*es) - 1
	e := (*es)[last]
	*es = (*es)[:last]
	return e
}

func (s *schedule) at(at time.Duration, f func()) {
	s.sequence++
	heap.Push(&s.events, event{at, s.sequence, f})
}

func (s *schedule) after(d time.Duration, f func()) { s.at(time.Since(s.begin)+d, f) }

// A simulatedAgent is what beaconElection.run does, as a sequence of events.
type simulatedAgent struct {
	s     *schedule
	host  string
	addr  netip.AddrPort
	start time.Duration
	id    gate.Instance

	peers     *peers
	search    *search
	seen      senders
	listening bool
	cancelled bool // the search
	found     *simulatedAgent
	electedAt time.Duration
	admitsAt  time.Duration
	clients   []*connection // of the gate
	conns     []*connection // to others

	interval          time.Duration // between beacons
	sending, dialling int           // the last event of that kind; earlier ones have no effect
}

// A connection delivers in order: everything takes the same time.
type connection struct {
	from, to *simulatedAgent
	addr     netip.AddrPort
	delay    time.Duration
}

func (s *schedule) newAgent(k int, start time.Duration) *simulatedAgent {
	return &simulatedAgent{
		s: s, host: simulatedHost(k), addr: simulatedAddr(k), start: start, id: s.newID(-1, k),
		seen: senders{},
	}
}

// simulatedPeers are those of an agent on that host.
func simulatedPeers(host string, id gate.Instance, addr netip.AddrPort) *peers {
	own := &Meeting{id: id, Addrs: []netip.AddrPort{addr}}
	m := multicast{config: &Config{Host: host}, public: simulatedPublic, key: []byte(simulatedKey)}
	return newPeers(m, &rejections{notify: func(Notice) {}}, own)
}

func (a *simulatedAgent) begin() {
	a.peers = simulatedPeers(a.host, a.id, a.addr)
	a.search = &search{
		plan: &plan{peers: a.peers}, targets: targets{}, report: func(gate.Rejection) {},
	}
	a.listening, a.interval = true, beaconFirst
	a.s.after(a.s.lag(), a.send)
	a.s.after(firstWait+a.s.lag(), a.elect)
}

// send sends beacons, as sendRepeatedly does.
func (a *simulatedAgent) send() {
	for _, packet := range a.peers.packets() {
		if a.s.interval > 0 && a.s.random.IntN(4) == 0 {
			a.s.recorded = append(a.s.recorded, packet)
		}
		for _, b := range a.s.agents {
			if b != a && a.s.random.Float64() >= a.s.loss {
				a.s.after(a.s.lag(), func() { b.receive(packet) })
			}
		}
	}
	wait := a.interval
	a.interval = min(wait*3/2, beaconLast)
	a.sendAfter(wait)
}

func (a *simulatedAgent) sendAfter(d time.Duration) {
	a.sending++
	n := a.sending
	a.s.after(d, func() {
		if n == a.sending {
			a.send()
		}
	})
}

func (a *simulatedAgent) receive(packet []byte) {
	if !a.listening && a.found == nil {
		return // it has not started
	}
	a.peers.receive(beacon.Packet{Data: packet, From: a.addr.Addr()})
	select {
	case <-a.peers.newcomer:
		a.sendAfter(newcomerDelay)
	default:
	}
	if len(a.peers.better) == 1 {
		a.s.after(a.s.lag(), func() {
			for len(a.peers.better) > 0 {
				a.seen.add(<-a.peers.better, a.search.add)
			}
			a.dial()
		})
	}
}

// dial makes the attempts that are due, as search.run does.
func (a *simulatedAgent) dial() {
	if a.cancelled {
		return
	}
	due, sleep := a.search.due()
	for _, t := range due {
		a.connect(t.addr, t.name)
	}
	a.dialling++
	n := a.dialling
	a.s.after(sleep, func() {
		if n == a.dialling {
			a.dial()
		}
	})
}

var errRefused = errors.New("refused")

func (a *simulatedAgent) connect(addr netip.AddrPort, host string) {
	var to *simulatedAgent
	for _, b := range a.s.agents {
		if b.addr == addr {
			to = b
		}
	}
	c := &connection{a, to, addr, a.s.lag()}
	switch {
	case to == nil:
		a.s.after(peerTimeout, func() { a.ends(c, os.ErrDeadlineExceeded) })
	case !to.listening:
		a.s.after(2*c.delay, func() { a.ends(c, errRefused) })
	default:
		a.s.after(2*c.delay+a.s.lag(), func() { a.authenticate(c, host) })
	}
}

// authenticate is when the agent sends its certificate. It is a client of the other one when that
// arrives.
func (a *simulatedAgent) authenticate(c *connection, host string) {
	switch err := a.peers.waitFor(c.to.id, host, c.addr); {
	case a.cancelled:
	case err != nil:
		a.ends(c, err)
	default:
		a.conns = append(a.conns, c)
		a.s.after(c.delay, func() {
			switch {
			case !c.to.listening:
				a.s.after(c.delay, func() { a.ends(c, errRefused) })
			case c.to.admitsAt > 0:
				c.to.greet(c)
			default:
				c.to.clients = append(c.to.clients, c)
			}
		})
	}
}

// ends is when the agent knows that an attempt has failed.
func (a *simulatedAgent) ends(c *connection, err error) {
	if a.cancelled {
		return
	}
	a.conns = without(a.conns, c)
	a.peers.waitNoMore(c.addr)
	a.s.after(a.s.lag(), func() {
		if !a.cancelled {
			a.search.evaluate(answer{addr: c.addr, err: err})
			a.dial()
		}
	})
}

// elect is what waitElected does repeatedly.
func (a *simulatedAgent) elect() {
	if a.cancelled {
		return
	}
	var clients []gate.Client
	for _, c := range a.clients {
		clients = append(clients, gate.Client{
			ID: c.from.id.String(), Host: c.from.host, Addr: c.from.addr.Addr(), Waiting: true,
		})
	}
	if !a.peers.elect(clients, len(a.s.agents)) {
		a.s.after(firstWait+a.s.lag(), a.elect)
		return
	}
	a.electedAt = time.Since(a.s.begin)
	a.s.after(a.s.lag(), func() {
		if a.cancelled {
			return // it has found one at the same time
		}
		a.cancelled = true
		a.close()
		a.peers.setHosting()
		a.interval = beaconFirst
		a.send()
		starting := 20*time.Millisecond + a.s.upTo(300*time.Millisecond)
		if a.s.random.IntN(8) == 0 {
			starting = a.s.upTo(6 * time.Second)
		}
		a.s.after(starting, a.admit)
	})
}

// close closes the connections to others.
func (a *simulatedAgent) close() {
	for _, c := range a.conns {
		a.s.after(c.delay, func() { c.to.clients = without(c.to.clients, c) })
	}
	a.conns = nil
}

func (a *simulatedAgent) admit() {
	a.admitsAt, a.found = time.Since(a.s.begin), a
	for _, c := range a.clients {
		a.greet(c)
	}
}

func (a *simulatedAgent) greet(c *connection) {
	other := c.from
	a.s.after(c.delay+a.s.lag(), func() {
		if other.cancelled {
			return
		}
		other.cancelled, other.found, other.listening = true, a, false
		other.close()
		other.peers.setFound(&Meeting{id: a.id, Addrs: []netip.AddrPort{a.addr}}, a.host)
		for _, d := range other.clients { // of its gate, which it closes
			a.s.after(d.delay, func() { d.from.ends(d, errRefused) })
		}
		other.clients = nil
	})
}

func without(list []*connection, c *connection) []*connection {
	return slices.DeleteFunc(list, func(d *connection) bool { return d == c })
}
