package agent

import (
	"io/fs"
	"os"
	"strconv"
	"testing"
	"testing/fstest"

	"rdzv/envmap"
	"rdzv/rdzv/etcd"
)

// The launcher overrides Config.Nodes, which is reported if it differs. A job of one node uses no
// other node's store.
func TestIgnoredFlags(t *testing.T) {
	const oneNode = "the job has one node; Config.Nodes N makes it a job of N nodes"
	for _, c := range []struct {
		config Config
		place  envmap.Placement
		want   string // flag and reason
	}{
		{Config{Nodes: 2}, envmap.Placement{Launcher: envmap.None, Nodes: envmap.Unknown}, ""},
		{Config{Nodes: 2}, envmap.Placement{Launcher: envmap.Slurm, Nodes: 2}, ""},
		{Config{}, envmap.Placement{Launcher: envmap.Slurm, Nodes: 2}, ""},
		{
			Config{Nodes: 2}, envmap.Placement{Launcher: envmap.Slurm, Nodes: 1},
			"Config.Nodes 2: slurm started this job on 1 node (Config.Launcher none uses the field)",
		},
		{
			Config{Nodes: 2}, envmap.Placement{Launcher: envmap.Hydra, Nodes: envmap.Unknown},
			"Config.Nodes 2: hydra started this job (Config.Launcher none uses the field)",
		},
		{Config{Store: "node1"}, envmap.Placement{Launcher: envmap.None},
			"Config.Store node1: " + oneNode},
		{Config{Join: "h:1/KEY"}, envmap.Placement{Launcher: envmap.None}, "Config.Join: " + oneNode},
		{Config{Store: "node1", Nodes: 1}, envmap.Placement{Launcher: envmap.None}, ""},
		{Config{Store: "node1"}, envmap.Placement{Launcher: envmap.Slurm, Nodes: 1}, ""},
	} {
		l := &Local{Config: c.config, Placement: c.place}
		got := ""
		for _, f := range l.IgnoredFlags() {
			got += f.Flag + ": " + f.Reason
		}
		if got != c.want {
			t.Errorf("%+v under %s: %q, want %q", c.config, c.place.Launcher, got, c.want)
		}
	}
}

// In an etcd cluster, jobs of one command have different names if a launcher has started them. On a
// platform they have without etcd too.
func TestNameInEtcd(t *testing.T) {
	cluster := etcd.Cluster{URLs: []string{"https://etcd1:2379"}}
	proxy := func(port string) fstest.MapFS {
		file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
		self := strconv.Itoa(os.Getpid())
		stat := " S 70 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
		return fstest.MapFS{
			self + "/stat": file(self + " (rdzv)" + stat),
			"70/stat":      file("70 (hydra_pmi_proxy) S 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"),
			"70/cmdline":   file("hydra_pmi_proxy\x00--control-port\x00" + port + "\x00--rmk\x00user\x00"),
		}
	}
	hydra := envmap.Placement{Launcher: envmap.Hydra}
	name := func(p envmap.Placement, c etcd.Cluster, proc fs.FS) string {
		l := &Local{Placement: p, Config: Config{Program: []string{"true"}, Etcd: c}}
		got, err := l.name(proc)
		if err != nil && (got != "" || Hint(err) != "give each job its own Config.Job NAME") {
			t.Errorf("%q, %v, hint %q", got, err, Hint(err))
		}
		return got
	}
	first, second := name(hydra, cluster, proxy("node1:1")), name(hydra, cluster, proxy("node1:2"))
	if first == "" || first == second || first != name(hydra, cluster, proxy("node1:1")) {
		t.Errorf("names %q and %q", first, second)
	}
	if got := name(hydra, cluster, fstest.MapFS{}); got != "" {
		t.Errorf("without a proxy: %q", got)
	}
	if name(hydra, etcd.Cluster{}, fstest.MapFS{}) == "" {
		t.Error("no name without etcd")
	}
	master := envmap.Placement{Launcher: envmap.UserSet, Master: "node1"}
	if name(master, cluster, nil) == "" {
		t.Error("no name with MASTER_ADDR")
	}
	group := func(leader string) string {
		return name(envmap.Placement{Launcher: envmap.LWS, Platform: "LeaderWorkerSet", Master: leader},
			etcd.Cluster{}, nil)
	}
	if group("serve-0.serve") == group("serve-0-1.serve") || group("serve-0.serve") == "" {
		t.Errorf("two groups of a LeaderWorkerSet are both %q", group("serve-0.serve"))
	}
	if none := (envmap.Placement{Launcher: envmap.None}); name(none, cluster, nil) !=
		name(none, etcd.Cluster{}, nil) {
		t.Error("the name without a launcher depends on etcd")
	}
}
