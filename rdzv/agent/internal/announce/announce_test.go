package announce

import (
	"testing"

	"rdzv/envmap"
	"rdzv/rdzv"
)

// Which agents say how a job ended: the store is on node1, a worker of node2 failed.
func TestAnnounces(t *testing.T) {
	failed := &rdzv.Verdict{Kind: rdzv.Failed, By: "id", Host: "node2"}
	ended := &rdzv.Verdict{Kind: rdzv.Ended, By: "id", Host: "node2"}
	for _, test := range []struct {
		agent                 string
		launcher              envmap.Launcher
		host                  string
		hosting               bool
		local                 int
		id                    string
		failed, ended, noMore bool // whether it announces these, and the loss of the store
	}{
		{"host of the store", "slurm", "node1", true, 0, "a", true, true, true},
		{"same node", "slurm", "node1", false, 1, "b", false, false, true},
		{"same node, third", "slurm", "node1", false, 2, "c", false, false, false},
		{"first of the other node", "slurm", "node2", false, 0, "d", false, true, true},
		{"failed", "slurm", "node2", false, 1, "id", true, false, false},
		{"another node", "slurm", "node3", false, 0, "e", true, true, true},
		{"second of that", "slurm", "node3", false, 1, "f", false, false, false},
		{"no launcher", envmap.None, "node2", false, envmap.Unknown, "g", true, true, true},
		{"unknown local rank", "pals", "node2", false, envmap.Unknown, "h", true, true, true},
	} {
		a := Agent{
			Launcher: test.launcher, LocalRank: test.local, ID: test.id, Host: test.host,
			Hosting: test.hosting, AtStore: test.host == "node1",
		}
		for _, c := range []struct {
			verdict *rdzv.Verdict
			want    bool
		}{{failed, test.failed}, {ended, test.ended}, {nil, test.noMore}} {
			if got := a.End(c.verdict); got != c.want {
				t.Errorf("%s: announces(%v) = %t, want %t", test.agent, c.verdict, got, c.want)
			}
		}
		reports := test.agent == "failed" || test.agent == "no launcher"
		if a.Reports(failed) != reports || a.Failure(rdzv.Summary{Verdict: failed}, false) != reports ||
			a.Reports(ended) || a.Reports(nil) {
			t.Errorf("%s: reports the failure: %t, want %t", test.agent, !reports, reports)
		}
	}
}

// With an etcd cluster the first agent of each node announces how the job ended, and the second one
// if the first one is lost.
func TestAnnouncesWithEtcd(t *testing.T) {
	a := Agent{Launcher: "slurm", Host: "node1", Elects: true}
	first := &rdzv.Verdict{Kind: rdzv.Lost, Host: "node1"}
	second := &rdzv.Verdict{Kind: rdzv.Lost, Host: "node1", LocalRank: 1}
	elsewhere := &rdzv.Verdict{Kind: rdzv.Lost, Host: "node2"}
	for _, v := range []*rdzv.Verdict{first, second, elsewhere, nil} {
		want := 0
		if v == first {
			want = 1
		}
		for rank := range 3 {
			a.LocalRank = rank
			if got := a.End(v); got != (rank == want) {
				t.Errorf("local rank %d announces %+v: %t", rank, v, got)
			}
		}
	}
}
