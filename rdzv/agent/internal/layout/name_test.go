package layout

import (
	"io/fs"
	"os"
	"strconv"
	"testing"
	"testing/fstest"

	"rdzv/envmap"
)

// In an etcd cluster, jobs of one command have different names if a launcher has started them. On a
// platform they have without etcd too.
func TestNameInEtcd(t *testing.T) {
	const cluster, elsewhere = true, false
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
	name := func(p envmap.Placement, inEtcd bool, proc fs.FS) string {
		n := Naming{Placement: p, Argv: []string{"true"}, InEtcd: inEtcd}
		got, err := n.Name(proc, os.Getpid())
		h, _ := err.(interface{ Hint() string })
		if err != nil && (got != "" || h.Hint() != "give each job its own --job NAME") {
			t.Errorf("%q, %v", got, err)
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
	if name(hydra, elsewhere, fstest.MapFS{}) == "" {
		t.Error("no name without etcd")
	}
	if got := name(hydra, elsewhere, proxy("node1:1")); got != first {
		t.Errorf("%q without etcd, %q in it", got, first)
	}
	master := envmap.Placement{Launcher: envmap.UserSet, Master: "node1"}
	if name(master, cluster, nil) == "" {
		t.Error("no name with MASTER_ADDR")
	}
	group := func(leader string) string {
		return name(envmap.Placement{Launcher: envmap.LWS, Platform: "LeaderWorkerSet", Master: leader},
			elsewhere, nil)
	}
	if group("serve-0.serve") == group("serve-0-1.serve") || group("serve-0.serve") == "" {
		t.Errorf("two groups of a LeaderWorkerSet are both %q", group("serve-0.serve"))
	}
	if none := (envmap.Placement{Launcher: envmap.None}); name(none, cluster, nil) !=
		name(none, elsewhere, nil) {
		t.Error("the name without a launcher depends on etcd")
	}
}

// The tasks of one start of a launcher may run different programs. Without a launcher, and on the
// nodes of a platform, different programs are different jobs.
func TestNamesOfDifferentPrograms(t *testing.T) {
	proxied := func(pid int) fstest.MapFS {
		stat := " S 70 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
		return fstest.MapFS{
			strconv.Itoa(pid) + "/stat": {Data: []byte(strconv.Itoa(pid) + " (rdzv)" + stat)},
			"70/stat":                   {Data: []byte("70 (hydra_pmi_proxy) S 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0")},
			"70/cmdline":                {Data: []byte("hydra_pmi_proxy\x00--control-port\x00node1:36809\x00--rmk\x00user")},
		}
	}
	port := envmap.Env{"MASTER_PORT": "29500"}
	for _, row := range []struct {
		name string
		p    envmap.Placement
		env  envmap.Env
		same bool
	}{
		{"hydra", envmap.Placement{Launcher: envmap.Hydra}, nil, true},
		{"intelmpi", envmap.Placement{Launcher: envmap.IntelMPI}, nil, true},
		{"env", envmap.Placement{Launcher: envmap.UserSet, Master: "node1"}, port, true},
		{"env without port", envmap.Placement{Launcher: envmap.UserSet, Master: "node1"}, nil, false},
		{"platform", envmap.Placement{Launcher: envmap.SkyPilot, Platform: "SkyPilot task",
			Master: "node1"}, port, false},
		{"none", envmap.Placement{Launcher: envmap.None}, nil, false},
	} {
		var names []string
		for _, argv := range [][]string{{"true"}, {"sleep", "1"}} {
			n := Naming{Argv: argv, Placement: row.p, Agents: 2, Env: row.env}
			got, err := n.Name(proxied(4), 4)
			if err != nil || got == "" {
				t.Fatalf("%s: %q, %v", row.name, got, err)
			}
			names = append(names, got)
		}
		if (names[0] == names[1]) != row.same {
			t.Errorf("%s: names %q, want the same: %t", row.name, names, row.same)
		}
	}
}
