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
var errOnce = errors.New("the store of this job has ended, and under Hydra agents can meet only once")

// byPMI lets rank 0 host, which puts its addresses and a random key; a barrier says that they are
// there, and all others get them.
func byPMI(ctx context.Context, j *joiner, _ *plan) (*Meeting, error) {
	if len(j.past) > 0 {
		return nil, errOnce
	}
	fd, _ := strconv.Atoi(j.config.Env["PMI_FD"])
	client, err := pmi.Start(ctx, fd)
	j.ending.onEnd(client.Finalize)
	if err != nil {
		return nil, fmt.Errorf("%w (has an MPI program run in this task before?)", err)
	}
	if j.config.Rank == 0 {
		return j.hostByPMI(ctx, client)
	}
	return j.lookByPMI(ctx, client)
}

// hostByPMI hosts the store, and says where it is. If it cannot, the others are told before anything
// else happens.
func (j *joiner) hostByPMI(ctx context.Context, client *pmi.Client) (m *Meeting, err error) {
	key, value := secret.NewKey(), failed
	p, err := planContact(j.config, key)
	if err == nil {
		m, err = j.hostAt(ctx, p)
	}
	if err == nil {
		value = formatContact(key, addressesOf(m.Addrs), m.Addr.Port())
	}
	err = errors.Join(err, client.Put(ctx, pmiKey, value), j.allHere(ctx, client))
	if err != nil {
		if m != nil {
			m.release()
		}
		return nil, err
	}
	remember(j.config, key, addressesOf(m.Addrs), j.ending.onEnd)
	return m, nil
}

// allHere waits at the barrier. Nobody can say who is missing there.
func (j *joiner) allHere(ctx context.Context, client *pmi.Client) error {
	stop := time.AfterFunc(barrierNews, func() { j.config.Notify(RanksMissing{j.config.Size}) })
	defer stop.Stop()
	return client.Barrier(ctx)
}

// lookByPMI gets from rank 0 where the store is.
func (j *joiner) lookByPMI(ctx context.Context, client *pmi.Client) (*Meeting, error) {
	if err := j.allHere(ctx, client); err != nil {
		return nil, err
	}
	text, err := client.Get(ctx, pmiKey)
	if err != nil {
		return nil, err
	}
	key, addrs, port, err := parseContact(text)
	if err != nil {
		return nil, err
	}
	remember(j.config, key, addrs, j.ending.onEnd)
	p, err := planContact(j.config, key)
	if err != nil {
		return nil, err
	}
	ports := slices.DeleteFunc(p.ports, func(q int) bool { return q == port })
	p.sources = []source{fixed("rank 0's host", 0, addrs, append([]int{port}, ports...))}
	return j.look(ctx, p)
}
