package ras

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// document is the report in JSON, since NCCL 2.28.7.
type document struct {
	Version string         `json:"nccl_version"`
	Comms   []communicator `json:"communicators"`
}

type communicator struct {
	Hash      string        `json:"hash"`
	Secondary string        `json:"secondary_hash"`
	Size      int           `json:"size"`
	Ranks     []rank        `json:"ranks"`
	Missing   []missingRank `json:"missing_ranks"`
}

type rank struct {
	Rank   int               `json:"rank"`
	Host   string            `json:"host"`
	PID    int               `json:"pid"`
	Counts map[string]uint64 `json:"collective_counts"`
}

type missingRank struct {
	Rank int    `json:"rank"`
	Host string `json:"host"`
	PID  int    `json:"pid"`

	Status struct {
		Unresponsive bool `json:"unresponsive"`
		Dead         bool `json:"considered_dead"`
	} `json:"status"`
}

func parseJSON(text string) (Report, error) {
	var d document
	err := json.Unmarshal([]byte(text), &d)
	if err != nil {
		err = json.Unmarshal([]byte(withCommas(text)), &d)
	}
	if err != nil {
		return Report{}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	r := Report{NCCL: d.Version, Count: len(d.Comms), Complete: true}
	for _, c := range d.Comms {
		comm, err := c.comm()
		if err != nil {
			return Report{}, err
		}
		r.Comms = append(r.Comms, comm)
	}
	slices.SortStableFunc(r.Comms, func(a, b Comm) int { return cmp.Compare(b.Size, a.Size) })
	return r, nil
}

// withCommas adds the commas that NCCL 2.28 leaves out where it lists missing ranks, between a
// number at the end of a line and the member "status".
func withCommas(text string) string {
	var b strings.Builder
	last := ""
	for line := range strings.Lines(text) {
		digit := last != "" && last[len(last)-1] >= '0' && last[len(last)-1] <= '9'
		if digit && strings.HasPrefix(strings.TrimLeft(line, " "), `"status":`) {
			b.WriteByte(',')
		}
		b.WriteString(line)
		last = strings.TrimRight(line, "\n")
	}
	return b.String()
}

func (c communicator) comm() (Comm, error) {
	comm := Comm{ID: c.Hash + ":" + c.Secondary, Size: c.Size}
	counts := map[string]map[uint64][]Member{} // by the name of the operation
	for _, r := range c.Ranks {
		if !valid(r.Rank, c.Size) {
			return comm, errUnreadable
		}
		for name, n := range r.Counts {
			if counts[name] == nil {
				counts[name] = map[uint64][]Member{}
			}
			counts[name][n] = append(counts[name][n], Member{r.Rank, host(r.Host), r.PID})
		}
	}
	for name, members := range counts {
		op := Op{Name: name}
		for n, list := range members {
			op.Groups = append(op.Groups, Group{Count: n, N: len(list), Members: list})
		}
		comm.add(op)
	}
	slices.SortFunc(comm.Ops, func(a, b Op) int { return cmp.Compare(a.Name, b.Name) })
	for _, r := range c.Missing {
		if !valid(r.Rank, c.Size) {
			return comm, errUnreadable
		}
		if r.Status.Unresponsive || r.Status.Dead { // otherwise it has left the communicator
			comm.Missing = append(comm.Missing, Member{r.Rank, host(r.Host), max(r.PID, 0)})
		}
	}
	return comm, nil
}

// host is an address, or "" if NCCL does not know it.
func host(name string) string {
	if name == "unknown" {
		return ""
	}
	return name
}

// add adds an operation with its groups and members in order.
func (c *Comm) add(op Op) {
	for _, g := range op.Groups {
		slices.SortFunc(g.Members, func(a, b Member) int { return cmp.Compare(a.Rank, b.Rank) })
	}
	slices.SortFunc(op.Groups, func(a, b Group) int { return cmp.Compare(a.Count, b.Count) })
	c.Ops = append(c.Ops, op)
}
