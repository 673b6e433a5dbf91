package meet

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"rdzv/rdzv/secret"
)

// node is the configuration of an agent on the host on which an environment was recorded.
func node(t *testing.T, record string, rank int) *Config {
	c := config(t, rank, 4)
	c.LocalSize, c.Nodes = 2, 2
	c.Env = recorded(t, record)
	c.Interfaces = func() ([]Interface, error) {
		return []Interface{face("docker0", "172.17.0.1/16"), face("eth0", "10.77.0.13/24")}, nil
	}
	c.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
		var k byte
		if _, err := fmt.Sscanf(host, "node%d", &k); err != nil {
			return nil, err
		}
		return []netip.Addr{netip.AddrFrom4([4]byte{10, 77, 0, 10 + k})}, nil
	}
	c.setDefaults()
	return &c
}

// wantCandidates waits until the plan's sources have added all the addresses with the first port.
func wantCandidates(t *testing.T, p *plan, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var mu sync.Mutex
	got := map[string]int{}
	var group sync.WaitGroup
	for _, src := range p.sources {
		group.Go(func() {
			src(ctx, func(c candidate) {
				mu.Lock()
				defer mu.Unlock()
				if int(c.addr.Port()) == p.ports[0] {
					got[c.addr.Addr().String()] = c.priority
				}
				missing := func(w string) bool { _, ok := got[w]; return !ok }
				if !slices.ContainsFunc(want, missing) {
					cancel()
				}
			})
		})
	}
	group.Wait()
	for _, w := range want {
		if _, ok := got[w]; !ok {
			t.Errorf("%s is not a candidate; candidates are %v", w, got)
		}
	}
}

func mustPlan(t *testing.T, c *Config) *plan {
	t.Helper()
	p, _, err := makePlan(t.Context(), c, func(f func()) { t.Cleanup(f) })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOpenMPI4Hosts(t *testing.T) {
	p := mustPlan(t, node(t, "openmpi4-launchernode-rank2", 2))
	wantCandidates(t, p, "10.77.0.12", "10.77.0.11", "10.78.0.11", "10.77.0.13")
	p = mustPlan(t, node(t, "openmpi4-launchernode-ip-rank2", 2))
	wantCandidates(t, p, "10.77.0.12", "10.77.0.11")

	// The remote address of the daemon's connection to mpirun, which is in no variable.
	c := node(t, "openmpi4-headrank-rank2", 2)
	ends := nativeWord(10, 77, 0, 12) + ":8C11 " + nativeWord(10, 79, 0, 99) + ":E283"
	c.Proc = fstest.MapFS{"self/net/tcp": {Data: []byte("x\n 0: " + ends + " 01 0\n")}}
	wantCandidates(t, mustPlan(t, c), "10.79.0.99")

	p = mustPlan(t, node(t, "openmpi4-headrank-rank0", 0))
	if !p.hosting || fmt.Sprint(p.addrs) != "[10.77.0.13]" || !p.announce {
		t.Errorf("rank 0: %+v", p)
	}
}

// The key is derived from mpirun's secret: it is the same for all ranks, and different from the key
// derived from the token.
func TestOpenMPI4Key(t *testing.T) {
	a := mustPlan(t, node(t, "openmpi4-launchernode-rank0", 0))
	b := mustPlan(t, node(t, "openmpi4-launchernode-rank2", 2))
	if *a.key != *b.key || *a.key == secret.DeriveKey(testToken, t.Name()) {
		t.Errorf("keys %v, %v", a.key, b.key)
	}
	c := node(t, "openmpi4-launchernode-rank0", 0)
	c.Env[transports] = "fade"
	if _, err := orte(c); err == nil || strings.Contains(err.Error(), "fade") {
		t.Errorf("error for a secret of 2 bytes: %v", err)
	}
}

// If Slurm's PMI or PMIx sets variables that other launchers set too, the key is still derived from
// the token, and PMI is not used.
func TestSlurmIsRecognised(t *testing.T) {
	for _, record := range []string{
		"slurm22-srun-rank2", "slurm22-pmi2-rank2", "slurm22-pmix-rank2",
		"slurm2411-pmix-rank2", "slurm2411-srun-rank2",
	} {
		c := node(t, record, 2)
		if !slurm(c) || openMPI4(c) || openMPI5(c) || hydra(c) {
			t.Errorf("%s: slurm %t, openmpi4 %t, openmpi5 %t, hydra %t",
				record, slurm(c), openMPI4(c), openMPI5(c), hydra(c))
		}
		p := mustPlan(t, c)
		if *p.key != secret.DeriveKey(testToken, t.Name()) {
			t.Errorf("%s: the key is not derived from the token", record)
		}
		wantCandidates(t, p, "10.77.0.11", "10.77.0.12")
	}
	if c := node(t, "slurm22-batchbody-rank0", 0); slurm(c) {
		t.Error("a batch script is taken for a task of a step")
	}
}

// Under mpirun and mpiexec inside sbatch, Slurm's variables are set too, but do not describe the
// rank.
func TestInsideSbatch(t *testing.T) {
	if c := node(t, "openmpi4-insbatch-rank3", 3); !openMPI4(c) {
		t.Error("Open MPI 4 is not recognised")
	}
	if c := node(t, "openmpi5deb-insbatch-rank3", 3); !openMPI5(c) {
		t.Error("Open MPI 5 is not recognised")
	}
	if c := node(t, "mpich4-insbatch-rank3", 3); !hydra(c) {
		t.Error("Hydra is not recognised")
	}
}

func TestOpenMPI5Hosts(t *testing.T) {
	for _, record := range []string{
		"openmpi5-headrank-rank2", "openmpi5deb-insbatch-rank3", "prrtemain-headrank-rank2",
	} {
		line, err := os.ReadFile("testdata/" + record + ".parent")
		if err != nil {
			t.Fatal(err)
		}
		c := node(t, record, 2)
		c.PID = 30
		stat := func(pid, parent int) *fstest.MapFile {
			rest := strings.Repeat("1 ", 20)
			return &fstest.MapFile{Data: fmt.Appendf(nil, "%d (x) S %d %s", pid, parent, rest)}
		}
		daemon := strings.ReplaceAll(strings.TrimSpace(string(line)), " ", "\x00") + "\x00"
		c.Proc = fstest.MapFS{ // the agent's parent is a shell, whose parent is the daemon
			"30/stat": stat(30, 20), "20/stat": stat(20, 10), "10/stat": stat(10, 1),
			"20/cmdline": {Data: []byte("sh\x00-c\x00rdzv\x00")},
			"10/cmdline": {Data: []byte(daemon)},
		}
		p := mustPlan(t, c)
		if *p.key != secret.DeriveKey(testToken, t.Name()) || p.hosting || !p.announce {
			t.Errorf("%s: %+v", record, p)
		}
		wantCandidates(t, p, "10.77.0.11", "10.78.0.11", "10.77.0.13")
	}
}

// If names cannot be resolved, scontrol is asked, at first for the first node.
func TestNamesFromScontrol(t *testing.T) {
	c := node(t, "slurm22-srun-rank2", 1)
	c.Resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, os.ErrNotExist }
	var asked []string
	c.Scontrol = func(_ context.Context, args ...string) ([]byte, error) {
		asked = append(asked, strings.Join(args, " "))
		return []byte("NodeName=node1 NodeAddr=10.99.0.1\n"), nil
	}
	wantCandidates(t, mustPlan(t, c), "10.99.0.1")
	if !slices.Equal(asked, []string{"-o show node node1"}) {
		t.Errorf("scontrol was run with %q", asked)
	}
}

// If only the name of rank 0's host is known, it is a candidate. Rank 0 hosts on its own addresses,
// whatever the name resolves to on its host.
func TestRankedByMasterAddr(t *testing.T) {
	localhost := map[string]string{"MASTER_ADDR": "localhost"}
	for name, test := range map[string]struct {
		launcher, master string
		env              map[string]string
	}{
		"name from the launcher":     {"kubeflow", "node2", nil},
		"MASTER_ADDR":                {"pals", "", map[string]string{"MASTER_ADDR": "node2"}},
		"name before MASTER_ADDR":    {"kubeflow", "node2", localhost},
		"localhost on rank 0's host": {"kubeflow", "localhost", localhost},
	} {
		c := node(t, "slurm22-batchbody-rank0", 1)
		c.Launcher, c.Master, c.Env = test.launcher, test.master, test.env
		if test.master == "localhost" {
			c.Rank = 0
		}
		p := mustPlan(t, c)
		if p.hosting != (c.Rank == 0) || fmt.Sprint(p.addrs) != "[10.77.0.13]" {
			t.Errorf("%s: plan of rank %d is %+v", name, c.Rank, p)
		}
		if c.Rank > 0 {
			wantCandidates(t, p, "10.77.0.12")
			if !strings.Contains(p.hint, `"node2"`) {
				t.Errorf("%s: hint %q does not name node2", name, p.hint)
			}
		}
	}
}

// The only agent of its node searches for rank 0's host, not on its own host; the hint for a name
// that does not resolve is that of the launcher.
func TestRankedAloneOnItsNode(t *testing.T) {
	c := node(t, "slurm22-batchbody-rank0", 1)
	c.Launcher, c.Master, c.LocalSize, c.MasterHint = "lws", "node2", 1, "make a service"
	p := mustPlan(t, c)
	if len(p.sources) != 1 {
		t.Errorf("%d sources, want that of node2 alone", len(p.sources))
	}
	wantCandidates(t, p, "10.77.0.12")
	for want, s := range map[string]Searching{
		"make a service; the name is resolved again until --join-timeout": {
			Unresolved: []string{"node2"},
		},
		p.hint: {Tried: []Answer{{Name: "node2"}}},
	} {
		if got := p.hintFor(s); got != want {
			t.Errorf("%v: hint %q, want %q", s, got, want)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"cannot use ports 30000-29999": func(c *Config) { c.PortLo, c.PortHi = 30000, 29999 },
		`cannot use network "10.0.0.0/33"`: func(c *Config) {
			c.Net = []string{"10.0.0.0/33"}
		},
		`cannot use network "eth7": no interface eth7 is up; there`: func(c *Config) {
			c.Net, c.LocalSize = []string{"eth7"}, 1
		},
		`cannot use store "node1:http"`:           func(c *Config) { c.Store = "node1:http" },
		"cannot use RDZV_JOIN: not ADDR:PORT/KEY": func(c *Config) { c.Join = "node1" },
		"cannot use RDZV_JOIN: no /KEY":           func(c *Config) { c.Join = "10.0.0.1:29600" },
		"cannot read SLURM_STEP_NODELIST=": func(c *Config) {
			c.Env["SLURM_STEP_ID"], c.Env["SLURM_STEP_NODELIST"] = "0", "node["
			c.LocalSize = 1
		},
	} {
		c := config(t, 1, 2)
		c.LocalSize = 2
		change(&c)
		_, err := Meet(t.Context(), c, noHost(t))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Meet: %v, want %s", err, want)
		}
	}
}

func face(name string, prefixes ...string) Interface {
	i := Interface{Name: name, Up: true, Multicast: true}
	for _, p := range prefixes {
		i.Addrs = append(i.Addrs, netip.MustParsePrefix(p))
	}
	return i
}

// nativeWord returns four bytes of an address as the kernel of this machine prints them.
func nativeWord(b ...byte) string { return fmt.Sprintf("%08X", binary.NativeEndian.Uint32(b)) }
