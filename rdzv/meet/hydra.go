package meet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"rdzv/rdzv/meet/internal/pmi"
	"rdzv/rdzv/secret"
)

// pmiKey is where rank 0 puts what the others need.
const pmiKey = "rdzv-store"

// hydra tells ranks of Hydra (MPICH, Intel MPI) by the descriptor they are given. Slurm has a PMI-1
// too, but one that takes no second user after us, so that an MPI worker would hang: never speak
// with it.
func hydra(c *Config) bool {
	if !c.from("hydra", "intelmpi", "mvapich2") || c.byHand() {
		return false
	}
	fd, err := strconv.Atoi(c.Env["PMI_FD"])
	return err == nil && fd > 2 && (c.Launcher != "" || c.Env["SLURM_STEP_ID"] == "" || c.Env["MPI_LOCALRANKID"] != "")
}

// barrierNews is how long the barrier is waited for in silence.
const barrierNews = 5 * time.Second

// errOnce is for who looks again: the others are past the barrier.
var errOnce = errors.New("the store of this job is gone or closed, and Hydra knows of no other")

// byPMI lets rank 0 host, which puts its addresses and a random key; a barrier says that they are
// there, and all others get them.
func byPMI(c *Config, onEnd func(func())) election {
	return func(ctx context.Context, j *joiner, _ *plan) (*Meeting, error) {
		if len(j.past) > 0 {
			return nil, errOnce
		}
		fd, _ := strconv.Atoi(c.Env["PMI_FD"])
		client, err := pmi.Start(ctx, fd)
		onEnd(client.Finalize)
		if err != nil {
			return nil, fmt.Errorf("%w (was there an MPI program in this task before?)", err)
		}
		t := &task{config: c, joiner: j, pmi: client, onEnd: onEnd}
		if c.Rank != 0 {
			return t.learn(ctx)
		}
		return t.tell(ctx)
	}
}

// A task is one rank of a job of Hydra, which tells or learns by PMI where the store is.
type task struct {
	config *Config
	joiner *joiner
	pmi    *pmi.Client
	onEnd  func(func())
}

// tell hosts the store, and says where it is.
func (t *task) tell(ctx context.Context) (*Meeting, error) {
	key := secret.NewKey()
	m, err := t.offer(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := t.allHere(ctx); err != nil {
		m.release()
		return nil, err
	}
	remember(t.config, key, addressesOf(m.Addrs), t.onEnd)
	return m, nil
}

// offer hosts the store, and puts where it is. If it cannot, the others are told before anything
// else happens.
func (t *task) offer(ctx context.Context, key secret.Key) (*Meeting, error) {
	m, err := t.host(ctx, key)
	if err != nil {
		return nil, errors.Join(err, t.pmi.Put(ctx, pmiKey, failed), t.allHere(ctx))
	}
	if err := t.pmi.Put(ctx, pmiKey, formatContact(key, addressesOf(m.Addrs), m.Addr.Port())); err != nil {
		m.release()
		return nil, err
	}
	return m, nil
}

func (t *task) host(ctx context.Context, key secret.Key) (*Meeting, error) {
	p, err := planContact(t.config, key)
	if err != nil {
		return nil, err
	}
	return t.joiner.hostAt(ctx, p)
}

// allHere waits at the barrier. Nobody can say who is missing there.
func (t *task) allHere(ctx context.Context) error {
	stop := time.AfterFunc(barrierNews, func() {
		t.config.Notify(RanksMissing{t.config.Size})
	})
	defer stop.Stop()
	return t.pmi.Barrier(ctx)
}

// learn gets from rank 0 where the store is.
func (t *task) learn(ctx context.Context) (*Meeting, error) {
	if err := t.allHere(ctx); err != nil {
		return nil, err
	}
	text, err := t.pmi.Get(ctx, pmiKey)
	if err != nil {
		return nil, err
	}
	key, addrs, port, err := parseContact(text)
	if err != nil {
		return nil, err
	}
	remember(t.config, key, addrs, t.onEnd)
	p, err := planContact(t.config, key)
	if err != nil {
		return nil, err
	}
	ports := slices.DeleteFunc(p.ports, func(q int) bool { return q == port })
	p.sources = []source{fixed("rank 0's host", 0, addrs, append([]int{port}, ports...))}
	return t.joiner.look(ctx, p)
}
