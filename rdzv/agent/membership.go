package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/masterport"
)

// membership is this agent's part in the job, from its joining until it has left.
type membership struct {
	local   *Local
	events  *reporter
	joinBy  time.Time // when it gives up waiting for the others; zero is never
	conn    *connection
	port    *masterport.Held // MASTER_PORT, where this agent may run rank 0
	self    rdzv.Member      // what it said of itself
	session *rdzv.Session    // in the job
	world   rdzv.World
	apart   error // why there is no world

	reported chan struct{} // closed when the job's end has been reported; nil before it runs
}

// join meets the other agents, becomes a member, and waits until all are here or the
// job has ended. Signals end it.
func (m *membership) join(in *interrupts) error {
	ctx := in.joining
	err := m.joinAt(ctx, m.conn.connect(ctx))
	for err == nil {
		in.joined(m.session)
		if m.agree(); !movedOn(m.apart) {
			return nil
		}
		err = m.move(ctx)
	}
	m.releasePort()
	return err
}

// joinAt becomes a member in the store that was found without err, or in another.
// Unless it returns nil it has closed the connection.
func (m *membership) joinAt(ctx context.Context, err error) error {
	joined := false
	defer func() {
		if !joined {
			m.conn.close()
		}
	}()
	for err == nil {
		if err = m.enter(ctx); err == nil {
			joined = true
			return nil
		}
		// The store of the job before this one may still be there, or go this
		// moment. Its host leaves when all have; ours comes up beside it or after it.
		if !errors.Is(err, rdzv.ErrClosed) && !errors.Is(err, rdzv.ErrStoreLost) || m.conn.hosting() {
			break
		}
		err = m.conn.again(ctx)
	}
	if errors.Is(err, rdzv.ErrFull) {
		err = full(err)
	}
	return err
}

// enter makes this agent a member in the store that was found.
func (m *membership) enter(ctx context.Context) (err error) {
	if err := m.conn.dial(ctx); err != nil {
		return err
	}
	m.events.send(m.conn.found())
	m.self = m.describe()
	m.session, err = rdzv.Join(ctx, m.conn.client, rdzv.Config{
		Job: m.local.Job, Self: m.self, JoinBy: m.joinBy, SettleTimeout: m.local.settleTimeout(),
	})
	return err
}

// settleMargin is how much longer than the grace the slowest agent may take to
// say that its workers have ended.
const settleMargin = 5 * time.Second

func (l *Local) settleTimeout() time.Duration { return l.Config.Grace + settleMargin }

// describe is what this agent says of itself.
func (m *membership) describe() rdzv.Member {
	p := m.local.Placement
	self := rdzv.Member{
		ID: newID(), Host: host.Name(), PID: os.Getpid(),
		Rank: p.Rank, LocalRank: p.LocalRank, LocalSize: p.LocalSize, NodeRank: p.NodeRank,
		Slots: m.local.Workers, Problems: m.problems(),
		Hosting: m.conn.hosting(), Addr: m.conn.addr, Via: m.conn.remote(), Ways: m.conn.ways,
	}
	if p.Launcher != envmap.None {
		self.Node = host.NodeID() // by hand each agent is a node: so many were asked for
	}
	if m.port != nil {
		self.MasterPort = m.port.Port()
	}
	return self
}

// newID is a name that no other agent has.
func newID() string {
	b := make([]byte, 8)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// holdPort takes a port for torch's store if rank 0 may be one of this agent's
// workers, and keeps it until they have ended.
func (m *membership) holdPort() (err error) {
	rank := m.local.Placement.Rank
	mayBeRank0 := rank == 0 || rank == envmap.Unknown && m.conn.hosting()
	if !mayBeRank0 || m.port != nil {
		return nil
	}
	m.port, err = masterport.Hold(m.local.Config.MasterPort)
	if errors.Is(err, syscall.EADDRINUSE) {
		return hinted{err, "without --master-port each job gets a port that is free"}
	}
	return err
}

func (m *membership) releasePort() {
	if m.port != nil {
		m.port.Close()
		m.port = nil
	}
}

// agree waits until all are here.
func (m *membership) agree() {
	stay := m.makeWay()
	m.world, m.apart = m.session.World(context.Background())
	stay()
	if m.apart == nil {
		m.events.send(WorldAgreed{m.world, m.world.Seat})
	}
}

// makeWay moves all members of this store on to another as soon as one turns up
// that is the better one, until stay: by hand two agents may have begun to host
// before they heard of each other.
func (m *membership) makeWay() (stay func()) {
	meeting := m.conn.meeting
	if meeting == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	if m.conn.hosting() {
		wg.Go(func() {
			select {
			case <-meeting.BetterHost:
				m.tell(func(ctx context.Context) error {
					moved, err := m.session.Move(ctx)
					if moved {
						meeting.Redirect()
					}
					return err
				})
			case <-ctx.Done():
			}
		})
	}
	return func() { cancel(); wg.Wait(); meeting.Agreed() }
}

func movedOn(err error) bool {
	var v *rdzv.Verdict
	return errors.As(err, &v) && v.Kind == rdzv.Moved
}

// move leaves this store, with all who are in it, and joins the other.
func (m *membership) move(ctx context.Context) error {
	m.settle(nil)
	if _, err := m.session.Leave(context.Background()); err != nil {
		m.events.verbose(err) // the other store is looked for all the same
	}
	return m.joinAt(ctx, m.conn.again(ctx))
}

// settle says to the job that all workers of this agent have ended. When all
// agents have, one of them reports: what this one has to say of the end comes before.
func (m *membership) settle(workers []rdzv.Worker) {
	if m.reported != nil && m.session.Context().Err() != nil {
		<-m.reported
	}
	m.tell(func(ctx context.Context) error { return m.session.Settle(ctx, workers) })
}

// tellTimeout bounds each word to the store, which answers in milliseconds.
const tellTimeout = 5 * time.Second

// tell says something to the job. That it cannot is no news for the user: the
// store is lost then, and that is told already.
func (m *membership) tell(word func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
	defer cancel()
	if err := word(ctx); err != nil {
		m.events.verbose(err)
	}
}

// full is ErrFull with what helps: somebody started one agent too many, or two
// jobs under one name.
func full(err error) error {
	return hinted{fmt.Errorf("cannot join: %w", err), "is there one agent too many? Two jobs at a time need a --job NAME each"}
}
