package meet

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"rdzv/internal/filelock"
	"rdzv/rdzv/meet/internal/hosts"
	"rdzv/rdzv/secret"
)

// slurm tells a task of srun. The body of a batch script has most of the variables too, but no step.
func (s *session) slurm() bool {
	return s.from("slurm", "slurm-pmi") && s.env("SLURM_STEP_ID") != "" && s.env("SLURM_STEP_NODELIST") != "" && !s.byHand()
}

// slurmStep plans for srun: rank 0 is on the first node of the step, or with some distributions on another.
func (s *session) slurmStep() (*plan, error) {
	p, err := s.planByToken()
	if err != nil {
		return nil, err
	}
	p.sources = []source{s.nearby(p.ports)}
	if !s.oneNode() {
		nodes, err := hosts.ParseHostlist(s.env("SLURM_STEP_NODELIST"))
		if err != nil {
			return nil, fmt.Errorf("cannot read SLURM_STEP_NODELIST=%q: %w", s.env("SLURM_STEP_NODELIST"), err)
		}
		p.sources = append(p.sources, s.names(nodes, 0, p.ports), s.nodeAddrs(nodes, p))
	}
	s.beside(p)
	p.hint = "rank 0's agent hosts the store on one of the step's nodes; do they reach each other on these ports?"
	return p, nil
}

// Slurm may know addresses that names do not give. Its controller is asked as little as can be: only by those who have found
// nothing for a while, once for a node, at first for the first host alone.
const (
	scontrolAfter = 300 * time.Millisecond
	scontrolMore  = 3 * time.Second
)

func (s *session) nodeAddrs(nodes []string, p *plan) source {
	return func(ctx context.Context, give func(offer)) {
		if s.Scontrol == nil {
			return
		}
		pause(ctx, scontrolAfter)
		soon, cancel := context.WithTimeout(ctx, scontrolAfter)
		_, err := s.lookup(soon, nodes[0])
		cancel()
		if err != nil {
			s.askScontrol(ctx, nodes[0], p, give)
		}
		pause(ctx, scontrolMore)
		s.askScontrol(ctx, s.env("SLURM_STEP_NODELIST"), p, give)
	}
}

func (s *session) askScontrol(ctx context.Context, nodes string, p *plan, give func(offer)) {
	if ctx.Err() != nil {
		return
	}
	text, err := s.oncePerNode(ctx, fmt.Sprintf("%s%x-%x", sharedPrefix, p.public, secret.PublicName(nodes)), func() ([]byte, error) {
		return s.Scontrol(ctx, "-o", "show", "node", nodes)
	})
	if err != nil {
		return
	}
	for i, n := range hosts.ParseScontrol(string(text)) {
		addrs, err := s.lookup(ctx, n.Addr)
		if err == nil {
			offerAll(give, n.Name, i, addrs, p.ports)
		}
	}
}

// maxShared is the most that is read of what another agent has found out, in bytes.
const maxShared = 1 << 24

// oncePerNode lets one of the agents on this host do something for all; the others wait for it and read what came out. The file
// stays until the job's first agent here leaves, and each that has read it holds it until it leaves itself: see Tidy.
func (s *session) oncePerNode(ctx context.Context, name string, do func() ([]byte, error)) ([]byte, error) {
	if s.RuntimeDir == "" {
		return do()
	}
	file := filepath.Join(s.RuntimeDir, name)
	f, err := filelock.Open(file, os.O_CREATE)
	if err != nil {
		return do()
	}
	s.onEnd(func() {
		os.Remove(file)
		f.Close()
	})
	for ; ctx.Err() == nil; pause(ctx, firstWait) {
		if f.TryShare() == nil {
			if text, err := io.ReadAll(io.NewSectionReader(f, 0, maxShared)); err == nil && len(text) > 0 {
				return text, nil
			}
		}
		if f.TryLock() == nil {
			return share(f, do)
		}
	}
	return nil, ctx.Err()
}

// share writes what came out, and lets the others read it; if nothing came out, the next of them asks.
func share(f filelock.File, do func() ([]byte, error)) ([]byte, error) {
	text, err := do()
	if err == nil {
		_, err = f.Write(text)
	}
	if err != nil || len(text) == 0 {
		_ = f.Unlock()
		return text, err
	}
	_ = f.TryShare()
	return text, nil
}
