package meet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Searching says that this agent has not found the store yet; its fields are what it has tried. It
// is reported at increasing intervals. Without a launcher it is first
// reported after 1 s if the user has named the store; on a platform after 10 s, because the names
// of nodes do not resolve before the nodes exist. Under a launcher only one agent of each node
// reports it.
type Searching struct {
	Waited time.Duration `json:"-"` // since the search began
	// host names that could not be resolved yet
	Unresolved []string `json:"unresolved,omitempty"`
	// host names for which the resolver has not answered yet
	Unanswered []string `json:"unanswered,omitempty"`
	Tried      []Answer `json:"-"` // sorted by address
	// whether the agent knows no address and waits for beacons
	Multicast bool `json:"multicast,omitempty"`
	// hosts of the agents that wait with this one until more than half of the job is there
	Connected  []string      `json:"connected,omitempty"`
	Heard      string        `json:"heard,omitempty"` // an agent whose beacon was received
	HeardAgo   time.Duration `json:"-"`               // when that was
	Rejections []Rejected    `json:"-"`               // agents that do not belong to the job
	Hint       string        `json:"hint,omitempty"`  // what to try
}

func (Searching) notice() {}

// An Answer is the last answer of one address.
type Answer struct {
	Name string // host name or description that the address belongs to; "" if none
	Addr netip.AddrPort
	Err  error // nil if there was no answer yet
}

// Pending tells whether all that is known is that no address has answered yet.
func (s Searching) Pending() bool {
	answered := func(a Answer) bool { return a.Err != nil }
	return len(s.Tried) > 0 && len(s.Rejections) == 0 && len(s.Unresolved) == 0 &&
		!slices.ContainsFunc(s.Tried, answered)
}

// String says in one line why the store was not found: agents that do not belong to the job explain
// that better than the answers of addresses.
func (s Searching) String() string {
	if len(s.Rejections) > 0 {
		var found []string
		for _, r := range s.Rejections {
			found = append(found, r.Agent()+", which "+r.differs())
		}
		return "found no agent of this job, but " + strings.Join(found, ", and ")
	}
	switch n := len(s.Connected) - maxParts; {
	case n > 0:
		return fmt.Sprintf("waiting for more agents with those of %s and %d more",
			strings.Join(s.Connected[:maxParts], ", "), n)
	case len(s.Connected) > 0:
		return "waiting for more agents with those of " + strings.Join(s.Connected, ", ")
	}
	var parts []string
	for _, name := range s.Unresolved {
		text := strconv.Quote(name) + " does not resolve"
		if slices.Contains(s.Unanswered, name) {
			text = "the resolver has not answered for " + strconv.Quote(name)
		}
		parts = append(parts, text)
	}
	for i, t := range s.Groups() {
		text := t.String()
		if i == 0 {
			text = "no store at " + text
		}
		parts = append(parts, text)
	}
	switch {
	case len(parts) > maxParts:
		parts = append(parts[:maxParts], fmt.Sprintf("and %d more", len(parts)-maxParts))
	case len(parts) > 0:
	case s.Heard != "":
		text := "no other agent has connected, but a multicast beacon of " + s.Heard +
			" was received"
		if s.HeardAgo >= disappearedAfter {
			text += fmt.Sprintf(", the last one %v ago", s.HeardAgo.Round(time.Second))
		}
		return text
	case s.Multicast:
		return "no other agent has connected, and no multicast beacon was received"
	default:
		return "no address of the store is known yet"
	}
	return strings.Join(parts, "; ")
}

// maxParts limits the length of a line about a search.
const maxParts = 3

// Tried are the ports of one address that have given the same answer.
type Tried struct {
	Host   string     `json:"host,omitempty"` // the name that the address belongs to
	Addr   netip.Addr `json:"addr"`           // an address
	Ports  []int      `json:"ports"`          // its ports that gave the same answer
	Answer string     `json:"answer"`         // the answer, such as `connection refused`
}

// Groups groups the answers.
func (s Searching) Groups() (list []Tried) {
	for _, a := range s.Tried {
		t := Tried{Host: a.Name, Addr: a.Addr.Addr(), Answer: a.text()}
		i := slices.IndexFunc(list, func(o Tried) bool {
			return o.Host == t.Host && o.Addr == t.Addr && o.Answer == t.Answer
		})
		if i < 0 {
			i, list = len(list), append(list, t)
		}
		list[i].Ports = append(list[i].Ports, int(a.Addr.Port()))
	}
	return list
}

// String is "node1 10.77.0.11 port 29621: connection refused", or, as ports that were not given
// mean nothing to the user, "node1 10.77.0.11 (16 ports tried): connection refused".
func (t Tried) String() string {
	text := t.Addr.String()
	if t.Host != "" && t.Host != text {
		text = t.Host + " " + text
	}
	if n := len(t.Ports); n > 1 {
		return fmt.Sprintf("%s (%d ports tried): %s", text, n, t.Answer)
	}
	return fmt.Sprintf("%s port %d: %s", text, t.Ports[0], t.Answer)
}

// text returns the answer in as few words as possible.
func (a Answer) text() string {
	if a.Err == nil {
		return "no answer yet"
	}
	if errno, ok := errors.AsType[syscall.Errno](a.Err); ok {
		return errno.Error()
	}
	if netErr, ok := errors.AsType[net.Error](a.Err); ok && netErr.Timeout() {
		return "no answer"
	}
	return a.Err.Error()
}
