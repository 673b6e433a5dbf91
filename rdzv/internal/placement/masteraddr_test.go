package placement

import (
	"strings"
	"testing"
)

func TestMasterAddr(t *testing.T) {
	at := func(node, addr, via string) Member { return Member{Node: node, Addr: addr, StoreAddr: via} }
	reaching := func(m Member, stores ...string) Member { // its own addresses differ from the store's in the last digit
		for _, s := range stores {
			m.Paths = append(m.Paths, Path{Store: s, Own: strings.TrimSuffix(s, "1") + "7"})
		}
		return m
	}
	hosting := func(m Member, allowed string) Member {
		m.Hosting, m.Paths = true, []Path{{Store: allowed, Own: allowed}}
		return m
	}
	for name, test := range map[string]struct {
		nodes   int
		members []Member // the first has rank 0
		want    string
	}{
		"one node": {1, []Member{at("a", "10.0.0.1", "10.0.0.1")}, "127.0.0.1"},
		"not on the store's node": {2, []Member{at("b", "10.0.0.2", "10.0.0.1"), at("a", "", "")},
			"10.0.0.2"},
		"hosts the store": {2, []Member{at("a", "", ""), at("b", "10.0.0.2", "10.0.0.1")},
			"10.0.0.1"},
		"on the store's node": {
			2, []Member{at("a", "127.0.0.1", "127.0.0.1"), at("a", "", ""),
				at("b", "10.0.0.2", "10.0.0.1")},
			"10.0.0.1",
		},
		"used by most agents": {
			4,
			[]Member{at("a", "", ""), at("b", "1", "10.0.0.1"), at("c", "1", "10.9.0.1"),
				at("d", "1", "10.9.0.1")},
			"10.9.0.1",
		},
		"used by equally many": {
			3, []Member{at("a", "", ""), at("b", "1", "10.9.0.1"), at("c", "1", "10.0.0.1")},
			"10.9.0.1",
		},
		"its own node is not counted": {
			2,
			[]Member{at("a", "", ""), at("a", "1", "10.0.0.1"), at("a", "1", "10.0.0.1"),
				at("b", "1", "10.9.0.1")},
			"10.9.0.1",
		},
		"only its own node has one": {
			2, []Member{at("a", "", ""), at("a", "1", "10.0.0.1"),
				at("b", "127.0.0.1", "127.0.0.1")},
			"10.0.0.1",
		},
		"IPv6":        {2, []Member{at("b", "fd00::2", "fd00::1"), at("a", "", "")}, "fd00::2"},
		"IPv6, hosts": {2, []Member{at("a", "", ""), at("b", "fd00::2", "fd00::1")}, "fd00::1"},
		"IPv4 in IPv6": {
			2, []Member{at("b", "::ffff:10.0.0.2", "::ffff:10.0.0.1"), at("a", "", "")}, "10.0.0.2",
		},
		"IPv6 loopback": {2, []Member{at("a", "::1", "::1"), at("b", "fd00::2", "fd00::1")},
			"fd00::1"},
		"link-local IPv6": {
			2, []Member{at("a", "fe80::1%eth0", "fe80::2%eth0"), at("b", "fd00::2", "fd00::1")},
			"fd00::1",
		},
		"link-local IPv4": {2, []Member{at("b", "169.254.1.2", "169.254.1.1"),
			at("a", "", "")}, "169.254.1.2"},
		"agents on one host are nodes": {2, []Member{at("", "", ""),
			at("", "127.0.0.1", "127.0.0.1")}, "127.0.0.1"},
		"one network reaches all": {4, []Member{
			at("a", "", ""), reaching(at("b", "1", "10.0.0.1"), "10.0.0.1", "10.9.0.1"),
			reaching(at("c", "1", "10.0.0.1"), "10.0.0.1", "10.9.0.1"),
			reaching(at("d", "1", "10.9.0.1"), "10.9.0.1"),
		}, "10.9.0.1"},
		"both networks do": {
			2, []Member{at("a", "", ""), reaching(at("b", "1", "10.9.0.1"), "10.0.0.1",
				"10.9.0.1")},
			"10.9.0.1",
		},
		"hosts the store, restricted": {
			2, []Member{hosting(at("a", "", ""), "10.9.0.1"),
				reaching(at("b", "1", "10.0.0.1"), "10.0.0.1", "10.9.0.1")},
			"10.9.0.1",
		},
		"hosts the store, restricted, not reached": {
			2, []Member{hosting(at("a", "", ""), "10.9.0.1"), at("b", "10.0.0.2", "10.0.0.1")},
			"10.9.0.1",
		},
		"beside the store": {2, []Member{
			at("a", "10.0.0.1", "10.0.0.1"), at("a", "", ""),
			reaching(at("b", "1", "10.9.0.1"), "10.9.0.1"),
		}, "10.9.0.1"},
		"one agent per node knows the ways": {3, []Member{
			at("a", "", ""), reaching(at("b", "1", "10.0.0.1"), "10.0.0.1", "10.9.0.1"),
			at("b", "1", "10.0.0.1"), at("b", "1", "10.0.0.1"),
			reaching(at("c", "1", "10.9.0.1"), "10.9.0.1"),
		}, "10.9.0.1"},
		"elsewhere, one network reaches all": {3, []Member{
			reaching(at("b", "10.0.0.7", "10.0.0.1"), "10.0.0.1", "10.9.0.1"), at("a", "", ""),
			at("c", "10.9.0.3", "10.9.0.1"),
		}, "10.9.0.7"},
		"elsewhere, the store's node is not counted": {4, []Member{
			reaching(at("b", "10.0.0.7", "10.0.0.1"), "10.0.0.1", "10.9.0.1"), at("a", "", ""),
			at("a", "10.0.0.1", "10.0.0.1"), at("a", "10.0.0.1", "10.0.0.1"),
			at("c", "10.9.0.3", "10.9.0.1"),
		}, "10.9.0.7"},
		"elsewhere, another agent of the node knows the ways": {3, []Member{
			at("b", "10.0.0.7", "10.0.0.1"), at("a", "", ""),
			reaching(at("b", "10.0.0.7", "10.0.0.1"), "10.0.0.1", "10.9.0.1"),
			at("c", "10.9.0.3", "10.9.0.1"),
		}, "10.9.0.7"},
		"elsewhere, no common network": {3, []Member{
			at("b", "10.0.0.2", "10.0.0.1"), at("a", "", ""), at("c", "10.9.0.3", "10.9.0.1"),
			at("d", "10.9.0.4", "10.9.0.1"),
		}, "10.0.0.2"},
		"no address at all": {2, []Member{at("a", "", "not an address"), at("b", "0.0.0.0", "::")},
			"127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := masterAddr(test.members[0], test.members, test.nodes); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
