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
	Comms []Comm `json:"communicators"`
}

// Comm is a communicator.
type Comm struct {
	Hash      string   `json:"hash"`
	Secondary string   `json:"secondary_hash"`
	Size      int      `json:"size"` // number of its ranks
	Ranks     []Member `json:"ranks"`
	Missing   []Member `json:"missing_ranks"` // that do not answer the service
}

// Member is a rank of a communicator.
type Member struct {
	Rank   int               `json:"rank"`
	Host   string            `json:"host"` // an address; "" if it is unknown
	PID    int               `json:"pid"`  // in its own PID namespace
	Counts map[string]uint64 `json:"collective_counts"`

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
	for i := range d.Comms {
		if !d.Comms[i].tidy() {
			return Report{}, errUnreadable
		}
	}
	slices.SortStableFunc(d.Comms, func(a, b Comm) int { return cmp.Compare(b.Size, a.Size) })
	return Report{Comms: d.Comms}, nil
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

// tidy sorts the ranks, and leaves out the missing ones that have left the communicator. It is
// false if a rank cannot be one of this communicator, or is there twice.
func (c *Comm) tidy() bool {
	for _, list := range [][]Member{c.Ranks, c.Missing} {
		slices.SortFunc(list, func(a, b Member) int { return cmp.Compare(a.Rank, b.Rank) })
		for i := range list {
			m := &list[i]
			if m.Rank < 0 || m.Rank >= c.Size || c.Size > maxSize || i > 0 && m.Rank == list[i-1].Rank {
				return false
			}
			if m.PID = max(m.PID, 0); m.Host == "unknown" {
				m.Host = ""
			}
		}
	}
	c.Missing = slices.DeleteFunc(c.Missing, func(m Member) bool {
		return !m.Status.Unresponsive && !m.Status.Dead
	})
	return true
}

// id is the same in all reports.
func (c Comm) id() string { return c.Hash + ":" + c.Secondary }
