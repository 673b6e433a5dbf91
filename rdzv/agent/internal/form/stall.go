package form

import (
	"rdzv/rdzv"
	"rdzv/rdzv/stacks"
)

// Stall is a stall.
type Stall struct {
	SilentSeconds float64 `json:"silent_seconds"` // for how long no worker has written anything
	// the rank that is behind; -1 if it is not known
	Rank   int    `json:"rank"`
	Host   string `json:"host,omitempty"`   // its node
	Reason string `json:"reason,omitempty"` // why that rank, or why it is not known
	// what NCCL reports about the ranks, or that it does not answer
	Collectives string `json:"nccl,omitempty"`
}

// StallOf makes the form.
func StallOf(s rdzv.Stall) Stall {
	return Stall{s.Silent.Seconds(), s.Rank, s.Host, s.Reason, s.Collectives}
}

// Place is a group of ranks that are at the same place.
type Place struct {
	Ranks []int    `json:"ranks"` // ranks of the group
	Hosts []string `json:"hosts"` // their nodes
	// what the main thread of the first rank is doing in the kernel
	Does   string   `json:"does"`
	Python []string `json:"python,omitempty"` // its Python stack, the innermost call first
}

// Problem is what is not known of ranks.
type Problem struct {
	Text  string   `json:"text"`  // the problem
	Hosts []string `json:"hosts"` // the nodes that have it
}

// PlaceOf makes the form.
func PlaceOf(g stacks.Group) Place {
	p := Place{Ranks: g.Ranks(), Does: g.Workers[0].Main.Does, Python: g.Workers[0].Python}
	for i, w := range g.Workers {
		if i == 0 || w.Host != g.Workers[i-1].Host {
			p.Hosts = append(p.Hosts, w.Host)
		}
	}
	return p
}
