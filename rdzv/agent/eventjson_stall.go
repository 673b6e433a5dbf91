package agent

import (
	"rdzv/rdzv"
	"rdzv/rdzv/stacks"
)

// The JSON form of a stall.

type stallForm struct {
	SilentSeconds float64 `json:"silent_seconds"` // for how long no worker has written anything
	// the rank that is behind; -1 if it is not known
	Rank   int    `json:"rank"`
	Host   string `json:"host,omitempty"`   // its node
	Reason string `json:"reason,omitempty"` // why that rank, or why it is not known
	// what NCCL reports about the ranks, or that it does not answer
	Collectives string `json:"nccl,omitempty"`
}

func stallFormOf(s rdzv.Stall) stallForm {
	return stallForm{s.Silent.Seconds(), s.Rank, s.Host, s.Reason, s.Collectives}
}

type stalledForm struct {
	stallForm
	Text    string `json:"text"`    // the fields above in words
	Attempt int    `json:"attempt"` // number of the attempt; 0 is the first
	// number of the stall in the attempt; 1 is the first
	Number         int     `json:"number"`
	TimeoutSeconds float64 `json:"timeout_seconds"` // `--stall-timeout`
	// whether the attempt ends because of it
	Ends bool `json:"ends"`
	// the file with the report, with `--log-dir`
	File string `json:"file,omitempty"`
	// number of flight recorders of torch that were told to write their files
	Recorders int `json:"flight_recorders,omitempty"`
	// groups of ranks with the same stack, the largest group first
	Stacks []placeForm `json:"stacks"`
	// what could not be determined, such as Python stacks without py-spy
	Problems []problemForm `json:"problems,omitempty"`
}

// placeForm is a group of ranks that are at the same place.
type placeForm struct {
	Ranks []int    `json:"ranks"` // ranks of the group
	Hosts []string `json:"hosts"` // their nodes
	// what the main thread of the first rank is doing in the kernel
	Does   string   `json:"does"`
	Python []string `json:"python,omitempty"` // its Python stack, the innermost call first
}

type problemForm struct {
	Text  string   `json:"text"`  // the problem
	Hosts []string `json:"hosts"` // the nodes that have it
}

func stalledFormOf(e Stalled) stalledForm {
	f := stalledForm{
		stallForm: stallFormOf(e.Stall), Text: e.Stall.String(), Attempt: e.Attempt, Number: e.Number,
		TimeoutSeconds: e.Timeout.Seconds(), Ends: e.Ends, File: e.File, Recorders: e.Stacks.Recorders,
		Stacks: []placeForm{},
	}
	for _, g := range e.Stacks.Groups {
		f.Stacks = append(f.Stacks, placeFormOf(g))
	}
	for _, p := range e.Stacks.Problems {
		f.Problems = append(f.Problems, problemForm(p))
	}
	return f
}

func placeFormOf(g stacks.Group) placeForm {
	p := placeForm{Ranks: g.Ranks(), Does: g.Workers[0].Main.Does, Python: g.Workers[0].Python}
	for i, w := range g.Workers {
		if i == 0 || w.Host != g.Workers[i-1].Host {
			p.Hosts = append(p.Hosts, w.Host)
		}
	}
	return p
}
