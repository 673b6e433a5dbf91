package rdzv

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Question is what an agent asks all agents of its job. Config.Answer answers it.
type Question struct {
	Kind string `json:"kind"`
	Arg  string `json:"arg,omitempty"`
}

// Answer is what one agent answers.
type Answer struct {
	Peer
	Value []byte `json:"value,omitempty"`
	Error string `json:"error,omitempty"` // why there is no value; "" if there is one
}

// Peer is an agent of the job.
type Peer struct {
	ID   string `json:"id"`
	Host string `json:"host"`
	PID  int    `json:"pid"`
	Seat Seat   `json:"seat"` // zero before the world is agreed
}

// MaxAnswer is the maximum size of an answer, in bytes. In the store it takes a third more.
const MaxAnswer = 320 << 10

// ask is the value of signal/ask/ID.
type ask struct {
	Question
	Within time.Duration `json:"within"` // how long the agent that asks waits for answers
}

// askTimeout is how long Ask waits for answers if ctx has no deadline, and forgetTimeout how much
// longer it takes at most.
const (
	askTimeout    = 2 * time.Second
	forgetTimeout = time.Second
)

// Ask asks all agents that have joined, including this one, from Join to Leave, also after the job
// has ended. It returns when all have answered or at ctx's deadline (by default after 2 s), with
// the answers and with the agents that have not answered, both in the order of their ranks. If ctx
// ends for another reason it returns that.
func (s *Session) Ask(ctx context.Context, q Question) (
	answers []Answer, missing []Peer, err error,
) {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askTimeout)
		defer cancel()
	}
	a := &asking{Session: s, id: rand.Text()[:16], missing: map[string]bool{}}
	err = a.collect(ctx, q)
	ctx, cancel := context.WithTimeout(context.Background(), forgetTimeout)
	defer cancel()
	ctx, done := s.untilStoreLost(ctx)
	defer done()
	err = cmp.Or(err, a.forget(ctx))
	if err == nil {
		missing, err = a.peers(ctx)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot ask the agents of job %q: %w", s.config.Job, err)
	}
	slices.SortFunc(a.answers, func(x, y Answer) int { return x.compare(y.Peer) })
	slices.SortFunc(missing, Peer.compare)
	return a.answers, missing, nil
}

func (p Peer) compare(q Peer) int {
	return cmp.Or(cmp.Compare(p.Seat.Rank, q.Seat.Rank), cmp.Compare(p.Host, q.Host),
		cmp.Compare(p.PID, q.PID))
}

// asking is one call of Ask.
type asking struct {
	*Session
	id       string // of the question
	revision int64  // of the store, with the question
	answers  []Answer
	missing  map[string]bool // IDs of the agents that have not answered
}

// collect puts the question and reads the answers until all have answered or the deadline of ctx.
func (a *asking) collect(ctx context.Context, q Question) error {
	ctx, done := a.untilStoreLost(ctx)
	defer done()
	if err := a.listMembers(ctx); err != nil {
		return err
	}
	events, stop, err := watch(ctx, a.client, a.keys.answers(a.id))
	if err != nil {
		return err
	}
	defer stop()
	if err := a.put(ctx, q); err != nil {
		return err
	}
	for len(a.missing) > 0 {
		select {
		case response, open := <-events:
			if !open || response.Err() != nil {
				return cmp.Or(response.Err(), ErrStoreLost)
			}
			a.read(response.Events)
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil
			}
			return context.Cause(ctx)
		}
	}
	return nil
}

func (a *asking) listMembers(ctx context.Context) error {
	all, err := again(ctx, func() (*clientv3.GetResponse, error) {
		return a.client.Get(ctx, a.keys.members(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	})
	if err == nil {
		for _, kv := range all.Kvs {
			a.missing[strings.TrimPrefix(string(kv.Key), a.keys.members())] = true
		}
	}
	return err
}

// put puts the question, once: after a broken connection it may be there already.
func (a *asking) put(ctx context.Context, q Question) error {
	deadline, _ := ctx.Deadline()
	key, value := a.keys.ask(a.id), encode(ask{q, time.Until(deadline)})
	done, err := commit(ctx, a.client,
		[]clientv3.Cmp{absent(key)},
		[]clientv3.Op{clientv3.OpPut(key, value, clientv3.WithLease(a.registration.jobLease))}, nil)
	if err == nil && done.Succeeded {
		a.revision = done.Header.Revision
	}
	return err
}

func (a *asking) read(events []*clientv3.Event) {
	for _, e := range events {
		by := strings.TrimPrefix(string(e.Kv.Key), a.keys.answers(a.id))
		answer, err := decode[Answer](e.Kv.Value)
		if err == nil && a.missing[by] {
			delete(a.missing, by)
			a.answers = append(a.answers, answer)
		}
	}
}

// forget removes the question and its answers, and what no agent needs any more from the store's
// history, which would grow with each question until the store is full.
func (a *asking) forget(ctx context.Context) error {
	_, err := commit(ctx, a.client, nil, []clientv3.Op{
		clientv3.OpDelete(a.keys.ask(a.id)),
		clientv3.OpDelete(a.keys.answers(a.id), clientv3.WithPrefix()),
	}, nil)
	old := a.asked.add(a.revision, time.Now(), a.config.keepHistory)
	if len(a.missing) == 0 && a.world.Load() != nil {
		old = a.revision
	}
	shared := a.registration.elects // with others, to whom the store's history belongs too
	if err == nil && old > 0 && !shared {
		_, _ = a.client.Compact(ctx, old) // fails if it has been done for a later question
	}
	return err
}

// history are the revisions of questions. What is older than a question that an agent has read it
// does not need, also if it reconnects. Every agent has read a question that it has answered, and
// one that was put some time ago: an agent whose connection is silent for that long is lost.
type history struct {
	mu   sync.Mutex
	list []question
}

type question struct {
	revision int64
	at       time.Time
}

// defaultKeepHistory is after what time every agent has read a question.
const defaultKeepHistory = time.Minute

// add adds a question, and returns the revision of the last one that is so old; 0 if there is none.
func (h *history) add(revision int64, at time.Time, age time.Duration) (old int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, question{revision, at})
	for len(h.list) > 0 && at.Sub(h.list[0].at) >= age {
		old, h.list = h.list[0].revision, h.list[1:]
	}
	return old
}

// peers reads who the missing agents are.
func (a *asking) peers(ctx context.Context) (list []Peer, err error) {
	for id := range a.missing {
		answer, err := commit(ctx, a.client, nil, []clientv3.Op{
			clientv3.OpGet(a.keys.member(id)), clientv3.OpGet(a.keys.seat(id)),
		}, nil)
		if err != nil {
			return nil, err
		}
		p := Peer{ID: id}
		for _, kv := range answer.Responses[0].GetResponseRange().Kvs {
			m, _ := decode[Member](kv.Value) // one that cannot be decoded ends the job
			p.Host, p.PID = m.Host, m.PID
		}
		for _, kv := range answer.Responses[1].GetResponseRange().Kvs {
			p.Seat, _ = decode[Seat](kv.Value)
		}
		list = append(list, p)
	}
	return list, nil
}

// answer answers a question of an agent. Nothing waits for it but close, which ends its context.
func (s *Session) answer(id string, value []byte) {
	question, err := decode[ask](value)
	if err != nil {
		return // the agent that asks reports that this one has not answered
	}
	ctx, cancel := context.WithTimeout(s.answering, question.Within)
	defer cancel()
	a := Answer{Peer: Peer{ID: s.config.Self.ID, Host: s.config.Self.Host, PID: s.config.Self.PID}}
	if seat := s.seat.Load(); seat != nil {
		a.Seat = *seat
	}
	err = errors.New("this agent answers no questions")
	if s.config.Answer != nil {
		a.Value, err = s.config.Answer(ctx, question.Question)
	}
	if err == nil && len(a.Value) > MaxAnswer {
		err = fmt.Errorf("an answer of %d bytes (at most %d allowed)", len(a.Value), MaxAnswer)
	}
	if err != nil {
		a.Value, a.Error = nil, clip(err.Error())
	}
	// Unless it comes too late. If the store is lost that is reported by itself.
	put := clientv3.OpPut(s.keys.answer(id, s.config.Self.ID), encode(a),
		clientv3.WithLease(s.registration.lease))
	_, _ = commit(ctx, s.client, []clientv3.Cmp{present(s.keys.ask(id))}, []clientv3.Op{put}, nil)
}
