package meet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"rdzv/rdzv/meet/internal/pmi"
	"rdzv/rdzv/secret"
)

// pmiKey is the key of the contact that rank 0 puts.
const pmiKey = "rdzv-store"

// hydra reports whether Hydra (MPICH, Intel MPI, MVAPICH) has started this agent: it passes a
// descriptor. Slurm has PMI-1 too, but a second user of the descriptor after this agent, such as an
// MPI worker, would hang, so it is not used.
func hydra(c *Config) bool {
	fd, err := strconv.Atoi(c.Env["PMI_FD"])
	if !c.launcherMayBe("hydra", "intelmpi", "mvapich2") || !c.hasRank() || err != nil || fd <= 2 {
		return false
	}
	slurmStep := c.Env["SLURM_STEP_ID"] != "" && c.Env["MPI_LOCALRANKID"] == ""
	return c.Launcher != "" || !slurmStep
}

// barrierNotice is how long an agent waits at the barrier before it reports RanksMissing.
const barrierNotice = 5 * time.Second

// errOnce is the error of a second meeting: a second barrier would wait forever, because the other
// agents do not call it.
var errOnce = errors.New("the store of this job has ended, and agents under Hydra meet only once")

// byPMI is the election under Hydra: rank 0 hosts and puts its addresses and a random key, all
// ranks call the barrier, and the others get the values.
func byPMI(ctx context.Context, l *locator, _ *plan) (*Meeting, error) {
	if len(l.past) > 0 {
		return nil, errOnce
	}
	fd, _ := strconv.Atoi(l.config.Env["PMI_FD"])
	client, err := l.startPMI(ctx, fd)
	for _, fd := range l.config.OtherPMI {
		if err == nil {
			var other *pmi.Client
			other, err = l.startPMI(ctx, fd)
			l.others = append(l.others, other)
		}
	}
	if err != nil {
		return nil, err
	}
	if l.config.Rank == 0 {
		return l.hostByPMI(ctx, client)
	}
	return l.findByPMI(ctx, client)
}

// startPMI begins to use a descriptor, until the end of this agent.
func (l *locator) startPMI(ctx context.Context, fd int) (*pmi.Client, error) {
	client, err := pmi.Start(ctx, fd)
	if client == nil {
		return nil, err
	}
	l.cleanup.add(client.Finalize)
	if err != nil {
		return nil, fmt.Errorf("%w (has an MPI program run in this task before?)", err)
	}
	return client, nil
}

// hostByPMI hosts the store and puts its contact. If it cannot host, it reports that to the other
// ranks before it returns.
func (l *locator) hostByPMI(ctx context.Context, client *pmi.Client) (m *Meeting, err error) {
	ct, value := contact{key: secret.NewKey()}, failed
	p, err := ct.plan(l.config)
	if err == nil {
		m, err = l.hostStore(ctx, p)
	}
	if err == nil {
		ct.addrs, ct.port = addressesOf(m.Addrs), int(m.Addr.Port())
		value = ct.reveal()
	}
	err = errors.Join(err, client.Put(ctx, pmiKey, value), l.barrier(ctx, client))
	if err != nil {
		if m != nil {
			m.release()
		}
		return nil, err
	}
	saveContact(l.config, ct, l.cleanup.add)
	return m, nil
}

// barrier calls the barrier, in all tasks of this agent, and reports RanksMissing if that takes
// long.
func (l *locator) barrier(ctx context.Context, client *pmi.Client) error {
	stop := time.AfterFunc(barrierNotice, func() { l.config.Notify(RanksMissing{l.config.Size}) })
	defer stop.Stop()
	all := append([]*pmi.Client{client}, l.others...)
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() { errs[i] = c.Barrier(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// findByPMI gets the contact that rank 0 has put and connects to the store.
func (l *locator) findByPMI(ctx context.Context, client *pmi.Client) (*Meeting, error) {
	if err := l.barrier(ctx, client); err != nil {
		return nil, err
	}
	text, err := client.Get(ctx, pmiKey)
	if err != nil {
		return nil, err
	}
	ct, err := parseContact(text)
	if err != nil {
		return nil, err
	}
	saveContact(l.config, ct, l.cleanup.add)
	p, err := ct.plan(l.config)
	if err != nil {
		return nil, err
	}
	return l.findStore(ctx, p)
}
