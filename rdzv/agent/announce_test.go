package agent

import (
	"net/netip"
	"testing"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/etcd"
	"rdzv/rdzv/meet"
)

// Which agents say how a job ended: the store is on node1, a worker of node2 failed.
func TestAnnounces(t *testing.T) {
	failed := &rdzv.Verdict{Kind: rdzv.Failed, By: "id", Host: "node2"}
	ended := &rdzv.Verdict{Kind: rdzv.Ended, By: "id", Host: "node2"}
	for _, test := range []struct {
		agent                 string
		launcher              envmap.Launcher
		host, addr            string // addr is "" if the agent hosts the store
		local                 int
		id                    string
		failed, ended, noMore bool // whether it announces these, and the loss of the store
	}{
		{"host of the store", "slurm", "node1", "", 0, "a", true, true, true},
		{"same node", "slurm", "node1", "10.0.0.1", 1, "b", false, false, true},
		{"same node, third", "slurm", "node1", "10.0.0.1", 2, "c", false, false, false},
		{"first of the other node", "slurm", "node2", "10.0.0.2", 0, "d", false, true, true},
		{"failed", "slurm", "node2", "10.0.0.2", 1, "id", true, false, false},
		{"another node", "slurm", "node3", "10.0.0.3", 0, "e", true, true, true},
		{"second of that", "slurm", "node3", "10.0.0.3", 1, "f", false, false, false},
		{"no launcher", envmap.None, "node2", "10.0.0.2", envmap.Unknown, "g", true, true, true},
		{"unknown local rank", "pals", "node2", "10.0.0.2", envmap.Unknown, "h", true, true, true},
	} {
		local := &Local{
			Placement: envmap.Placement{Launcher: test.launcher, LocalRank: test.local},
		}
		m := &membership{
			local: local, self: rdzv.Member{ID: test.id, Host: test.host},
			conn: &connection{
				local: local, addr: test.addr,
				meeting: &meet.Meeting{Addr: netip.MustParseAddrPort("10.0.0.1:29600")},
			},
		}
		if test.addr == "" {
			m.conn.hosted = &hosted{}
		}
		for _, c := range []struct {
			verdict *rdzv.Verdict
			want    bool
		}{{failed, test.failed}, {ended, test.ended}, {nil, test.noMore}} {
			if got := m.announces(c.verdict); got != c.want {
				t.Errorf("%s: announces(%v) = %t, want %t", test.agent, c.verdict, got, c.want)
			}
		}
	}
}

// With an etcd cluster the first agent of each node announces how the job ended, and the second one
// if the first one is lost.
func TestAnnouncesWithEtcd(t *testing.T) {
	local := &Local{Config: Config{Etcd: etcd.Cluster{URLs: []string{"https://etcd1:2379"}}}}
	local.Placement.Launcher = "slurm"
	m := &membership{
		local: local, self: rdzv.Member{Host: "node1"}, conn: &connection{local: local, addr: "10.0.0.1"},
	}
	first := &rdzv.Verdict{Kind: rdzv.Lost, Host: "node1"}
	second := &rdzv.Verdict{Kind: rdzv.Lost, Host: "node1", LocalRank: 1}
	elsewhere := &rdzv.Verdict{Kind: rdzv.Lost, Host: "node2"}
	for _, v := range []*rdzv.Verdict{first, second, elsewhere, nil} {
		want := 0
		if v == first {
			want = 1
		}
		for rank := range 3 {
			local.Placement.LocalRank = rank
			if got := m.announces(v); got != (rank == want) {
				t.Errorf("local rank %d announces %+v: %t", rank, v, got)
			}
		}
	}
}

// Which agents tell the user what all agents of a node know before they meet.
func TestFirstOfNode(t *testing.T) {
	for _, test := range []struct {
		launcher envmap.Launcher
		local    int
		want     bool
	}{
		{"slurm", 0, true}, {"slurm", 1, false}, {"pals", envmap.Unknown, true},
		{envmap.None, envmap.Unknown, true}, {envmap.None, 1, true},
	} {
		l := &Local{Placement: envmap.Placement{Launcher: test.launcher, LocalRank: test.local}}
		if got := l.FirstOfNode(); got != test.want {
			t.Errorf("%s, local rank %d: %t, want %t", test.launcher, test.local, got, test.want)
		}
	}
}
