package console

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv/agent"
	"rdzv/rdzv/meet"
)

// The lines of events that occur while an agent searches for the others.
func TestSearchEvents(t *testing.T) {
	addr := netip.MustParseAddr("10.0.0.6")
	for _, test := range []struct {
		event agent.Event
		want  string
	}{
		{
			agent.Alone{Waited: 3 * time.Second, Store: "10.0.0.6", JoinLine: "RDZV_JOIN=10.0.0.6:1/KEY"},
			"rdzv: no other agent has connected after 3s\n" +
				"rdzv: hint: if the other nodes cannot find this one, start every node with --store 10.0.0.6\n" +
				"rdzv: hint: put this before the command on a node that cannot find this one: RDZV_JOIN=10.0.0.6:1/KEY\n",
		},
		{agent.Alone{Waited: 3 * time.Second}, "rdzv: no other agent has connected after 3s\n"},
		{
			agent.DifferentToken{DifferentToken: meet.DifferentToken{Host: "node2", Addr: addr}},
			"rdzv: node2 (10.0.0.6) has a different token: copy ~/.config/rdzv/token " +
				"from one node to the other, or start rdzv here with RDZV_JOIN=...\n",
		},
		{
			agent.DifferentCommand{DifferentCommand: meet.DifferentCommand{Addr: addr}},
			"rdzv: 10.0.0.6 runs a different command: " +
				"give both the same --job NAME, or each job its own port\n",
		},
		{
			agent.RanksMissing{RanksMissing: meet.RanksMissing{Ranks: 4}},
			"rdzv: waiting for all 4 ranks to start (Hydra does not report which are missing)\n",
		},
		{
			agent.NoMulticast{Err: errors.New("network is down")},
			"rdzv: cannot search for the other nodes by multicast: network is down\n",
		},
	} {
		var out strings.Builder
		c := &Console{out: &out}
		if c.Event(test.event); out.String() != test.want {
			t.Errorf("%+v: wrote %q\nwant %q", test.event, &out, test.want)
		}
	}
}
