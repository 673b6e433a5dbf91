package meet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdzv/rdzv/meet/internal/pmi"
	"rdzv/rdzv/secret"
)

// pmiKey is where rank 0 puts what the others need.
const pmiKey = "rdzv-store"

// hydra tells ranks of Hydra (MPICH, Intel MPI) by the descriptor they are given. Slurm has a PMI-1 too, but
// one that takes no second user after us, so that an MPI worker would hang: never speak with it.
func (s *session) hydra() bool {
	if !s.from("hydra", "intelmpi", "mvapich2") || s.byHand() {
		return false
	}
	fd, err := strconv.Atoi(s.env("PMI_FD"))
	return err == nil && fd > 2 && (s.Launcher != "" || s.env("SLURM_STEP_ID") == "" || s.env("MPI_LOCALRANKID") != "")
}

// pmi plans for Hydra: rank 0 puts its addresses and a random key, a barrier says that they are there, all others get them.
func (s *session) pmi() (*plan, error) {
	if p, err := s.remembered(); p != nil || err != nil {
		return p, err
	}
	return &plan{elect: meetByPMI}, nil
}

// barrierNews is how long the barrier is waited for in silence.
const barrierNews = 5 * time.Second

// errOnce is for who looks again: the others are past the barrier.
var errOnce = errors.New("the store of this job is gone or closed, and Hydra knows of no other")

func meetByPMI(ctx context.Context, s *session, _ *plan) (*Meeting, error) {
	if s.usedPMI {
		return nil, errOnce
	}
	s.usedPMI = true
	fd, _ := strconv.Atoi(s.env("PMI_FD"))
	p, err := pmi.Start(ctx, fd)
	s.onEnd(p.Finalize)
	if err != nil {
		return nil, fmt.Errorf("%w (was there an MPI program in this task before?)", err)
	}
	if s.Rank != 0 {
		return s.learn(ctx, p)
	}
	m, err := s.offerByPMI(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := s.allHere(ctx, p); err != nil {
		m.release()
		return nil, err
	}
	s.remember(m.plan.contact, addressesOf(m.Addrs))
	return m, nil
}

// offerByPMI hosts the store, and puts where it is. If it cannot, the others are told before anything else happens.
func (s *session) offerByPMI(ctx context.Context, p *pmi.Client) (*Meeting, error) {
	m, err := s.hostRandom(ctx)
	if err != nil {
		return nil, errors.Join(err, p.Put(ctx, pmiKey, failed), s.allHere(ctx, p))
	}
	if err := p.Put(ctx, pmiKey, formatContact(m.plan.contact, addressesOf(m.Addrs), m.Addr.Port())); err != nil {
		m.release()
		return nil, err
	}
	return m, nil
}

func (s *session) hostRandom(ctx context.Context) (*Meeting, error) {
	p, err := s.planContact(secret.NewKey())
	if err != nil {
		return nil, err
	}
	return s.hostAt(ctx, p)
}

// allHere waits at the barrier. Nobody can say who is missing there.
func (s *session) allHere(ctx context.Context, p *pmi.Client) error {
	stop := time.AfterFunc(barrierNews, func() {
		s.Say(fmt.Sprintf("waiting for all %d ranks to start (which are missing cannot be known before all are here)", s.Size))
	})
	defer stop.Stop()
	return p.Barrier(ctx)
}

// learn gets from rank 0 where the store is.
func (s *session) learn(ctx context.Context, c *pmi.Client) (*Meeting, error) {
	if err := s.allHere(ctx, c); err != nil {
		return nil, err
	}
	text, err := c.Get(ctx, pmiKey)
	if err != nil {
		return nil, err
	}
	key, addrs, port, err := parseContact(text)
	if err != nil {
		return nil, err
	}
	s.remember(key, addrs)
	p, err := s.planContact(key)
	if err != nil {
		return nil, err
	}
	ports := slices.DeleteFunc(p.ports, func(q int) bool { return q == port })
	p.sources = []source{fixed("rank 0's host", 0, addrs, append([]int{port}, ports...))}
	return s.look(ctx, p)
}

// planContact plans with the key that rank 0 has made; with --insecure that is but a name for the job.
func (s *session) planContact(key secret.Key) (*plan, error) {
	p, err := s.planFor(&key)
	if err != nil {
		return nil, err
	}
	p.contact = key
	if s.Insecure {
		p.key = nil
	}
	return p, nil
}

// failed is what rank 0 puts when it cannot host.
const failed = "failed"

var (
	errContact = errors.New("cannot use what rank 0 has put through PMI")
	errRank0   = errors.New("rank 0's agent cannot host the store")
)

// maxContact is the longest value that every PMI takes, in bytes.
const maxContact = 1000

// formatContact is what rank 0 puts: KEY;PORT;ADDR,ADDR.
func formatContact(key secret.Key, addrs []netip.Addr, port uint16) string {
	text := fmt.Sprintf("%s;%d;", key.Reveal(), port)
	for i, a := range addrs {
		if i > 0 {
			text += ","
		}
		if len(text)+len(a.String()) > maxContact {
			break
		}
		text += a.String()
	}
	return strings.TrimSuffix(text, ",")
}

// parseContact reads what formatContact wrote. Errors do not repeat the text.
func parseContact(text string) (key secret.Key, addrs []netip.Addr, port int, err error) {
	if text == failed {
		return secret.Key{}, nil, 0, errRank0
	}
	words := strings.Split(text, ";")
	if len(words) != 3 {
		return secret.Key{}, nil, 0, errContact
	}
	key, err = secret.ParseKey(words[0])
	port, err2 := strconv.Atoi(words[1])
	if err != nil || err2 != nil || port < 0 || port > 65535 {
		return secret.Key{}, nil, 0, errContact
	}
	for word := range strings.SplitSeq(words[2], ",") {
		a, err := netip.ParseAddr(word)
		if err != nil {
			return secret.Key{}, nil, 0, errContact
		}
		addrs = append(addrs, a)
	}
	return key, addrs, port, nil
}

func addressesOf(list []netip.AddrPort) []netip.Addr {
	var addrs []netip.Addr
	for _, a := range list {
		addrs = append(addrs, a.Addr())
	}
	return addrs
}
