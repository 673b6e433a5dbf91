package agent

import (
	"rdzv/rdzv"
	"rdzv/rdzv/stacks"
)

// The JSON form of a stall.

type stallForm struct {
	SilentSeconds float64 `json:"silent_seconds"`
	Rank          int     `json:"rank"`
	Host          string  `json:"host,omitempty"`
	Reason        string  `json:"reason,omitempty"`
	Collectives   string  `json:"nccl,omitempty"`
}

func stallFormOf(s rdzv.Stall) stallForm {
	return stallForm{s.Silent.Seconds(), s.Rank, s.Host, s.Reason, s.Collectives}
}

type stalledForm struct {
	stallForm
	Text           string        `json:"text"`
	Attempt        int           `json:"attempt"`
	Number         int           `json:"number"`
	TimeoutSeconds float64       `json:"timeout_seconds"`
	Ends           bool          `json:"ends"`
	File           string        `json:"file,omitempty"`
	Recorders      int           `json:"flight_recorders,omitempty"`
	Stacks         []placeForm   `json:"stacks"`
	Problems       []problemForm `json:"problems,omitempty"`
}

// placeForm is where ranks are that are at the same place.
type placeForm struct {
	Ranks  []int    `json:"ranks"`
	Hosts  []string `json:"hosts"`
	Does   string   `json:"does"`
	Python []string `json:"python,omitempty"`
}

type problemForm struct {
	Text  string   `json:"text"`
	Hosts []string `json:"hosts"`
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
