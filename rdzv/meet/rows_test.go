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

// node is an agent on the host that a record was made on, as far as it can be told from here.
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
	c.fill()
	return &c
}

// offered waits until the plan's sources have offered all the addresses, with the first of the
// ports, and gives their order of likelihood.
func offered(t *testing.T, p *plan, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var mu sync.Mutex
	got := map[string]int{}
	var group sync.WaitGroup
	for _, src := range p.sources {
		group.Go(func() {
			src(ctx, func(o offer) {
				mu.Lock()
				defer mu.Unlock()
				if int(o.addr.Port()) == p.ports[0] {
					got[o.addr.Addr().String()] = o.likely
				}
				if !slices.ContainsFunc(want, func(w string) bool { _, ok := got[w]; return !ok }) {
					cancel()
				}
			})
		})
	}
	group.Wait()
	for _, w := range want {
		if _, ok := got[w]; !ok {
			t.Errorf("%s is not tried, only %v", w, got)
		}
	}
}

func mustPlan(t *testing.T, c *Config) *plan {
	t.Helper()
	p, _, err := choose(t.Context(), c, func(f func()) { t.Cleanup(f) })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOpenMPI4Hosts(t *testing.T) {
	offered(t, mustPlan(t, node(t, "openmpi4-launchernode-rank2", 2)), "10.77.0.12", "10.77.0.11", "10.78.0.11", "10.77.0.13")
	offered(t, mustPlan(t, node(t, "openmpi4-launchernode-ip-rank2", 2)), "10.77.0.12", "10.77.0.11")
	c := node(t, "openmpi4-headrank-rank2", 2)
	c.Proc = fstest.MapFS{"self/net/tcp": &fstest.MapFile{Data: []byte("x\n 0: " + nativeWord(10, 77, 0, 12) + ":8C11 " + nativeWord(10, 79, 0, 99) + ":E283 01 0\n")}}
	offered(t, mustPlan(t, c), "10.79.0.99") // mpirun's end of the daemons' connection, which no variable names
	if p := mustPlan(t, node(t, "openmpi4-headrank-rank0", 0)); !p.hosts || fmt.Sprint(p.addrs) != "[10.77.0.13]" || !p.announce {
		t.Errorf("rank 0: %+v", p)
	}
}

// The key is of mpirun's secret: the same on all its ranks, whatever host they are on, and another
// than the token's.
func TestOpenMPI4Key(t *testing.T) {
	a, b := mustPlan(t, node(t, "openmpi4-launchernode-rank0", 0)), mustPlan(t, node(t, "openmpi4-launchernode-rank2", 2))
	if *a.key != *b.key || *a.key == secret.DeriveKey(testToken, t.Name()) {
		t.Errorf("keys %v, %v", a.key, b.key)
	}
	c := node(t, "openmpi4-launchernode-rank0", 0)
	c.Env[transports] = "short"
	if _, err := orte(c); err == nil || strings.Contains(err.Error(), "short-") {
		t.Errorf("a secret that is none: %v", err)
	}
}

// Where Slurm's own PMI or PMIx sets variables of others, the key is the token's and no PMI is
// spoken.
func TestSlurmIsNotTakenForOthers(t *testing.T) {
	for _, record := range []string{"slurm22-srun-rank2", "slurm22-pmi2-rank2", "slurm22-pmix-rank2", "slurm2411-pmix-rank2", "slurm2411-srun-rank2"} {
		c := node(t, record, 2)
		if !slurm(c) || openMPI4(c) || openMPI5(c) || hydra(c) {
			t.Errorf("%s: slurm %t, openmpi4 %t, openmpi5 %t, hydra %t", record, slurm(c), openMPI4(c), openMPI5(c), hydra(c))
		}
		p := mustPlan(t, c)
		if *p.key != secret.DeriveKey(testToken, t.Name()) {
			t.Errorf("%s: not the token's key", record)
		}
		offered(t, p, "10.77.0.11", "10.77.0.12")
	}
	if c := node(t, "slurm22-batchbody-rank0", 0); slurm(c) {
		t.Error("the body of a batch script is taken for a task")
	}
}

// mpirun and mpiexec inside sbatch have Slurm's variables too, and wrong ones.
func TestInsideSbatch(t *testing.T) {
	if c := node(t, "openmpi4-insbatch-rank3", 3); !openMPI4(c) {
		t.Error("Open MPI 4 is not seen")
	}
	if c := node(t, "openmpi5deb-insbatch-rank3", 3); !openMPI5(c) {
		t.Error("Open MPI 5 is not seen")
	}
	if c := node(t, "mpich4-insbatch-rank3", 3); !hydra(c) {
		t.Error("Hydra is not seen")
	}
}

func TestOpenMPI5Hosts(t *testing.T) {
	for _, record := range []string{"openmpi5-headrank-rank2", "openmpi5deb-insbatch-rank3", "prrtemain-headrank-rank2"} {
		line, err := os.ReadFile("testdata/" + record + ".parent")
		if err != nil {
			t.Fatal(err)
		}
		c := node(t, record, 2)
		c.PID = 30
		stat := func(pid, ppid int) *fstest.MapFile {
			return &fstest.MapFile{Data: []byte(fmt.Sprintf("%d (x) S %d %s", pid, ppid, strings.Repeat("1 ", 20)))}
		}
		c.Proc = fstest.MapFS{ // a shell stands between the daemon and us
			"30/stat": stat(30, 20), "20/stat": stat(20, 10), "20/cmdline": &fstest.MapFile{Data: []byte("sh\x00-c\x00rdzv\x00")}, "10/stat": stat(10, 1),
			"10/cmdline": &fstest.MapFile{Data: []byte(strings.ReplaceAll(strings.TrimSpace(string(line)), " ", "\x00") + "\x00")},
		}
		p := mustPlan(t, c)
		if *p.key != secret.DeriveKey(testToken, t.Name()) || p.hosts || !p.announce {
			t.Errorf("%s: %+v", record, p)
		}
		offered(t, p, "10.77.0.11", "10.78.0.11", "10.77.0.13")
	}
}

// Slurm may know what names do not tell; one agent of a node asks for all.
func TestSlurmAsksScontrolOncePerNode(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	asked := map[string]int{}
	var group sync.WaitGroup
	for rank := 1; rank < 4; rank++ {
		c := node(t, "slurm22-srun-rank2", rank)
		c.RuntimeDir = dir
		c.Resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, os.ErrNotExist }
		c.Scontrol = func(_ context.Context, args ...string) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[strings.Join(args, " ")]++
			return []byte("NodeName=node1 NodeAddr=10.99.0.1\n"), nil
		}
		group.Go(func() { offered(t, mustPlan(t, c), "10.99.0.1") })
	}
	group.Wait()
	if len(asked) != 1 || asked["-o show node node1"] != 1 {
		t.Errorf("asked %v", asked)
	}
}

// Where nothing but the name of rank 0's host is known, the store is looked for there. Rank 0 hosts
// on all its addresses, whatever it takes the name for.
func TestRankedByMasterAddr(t *testing.T) {
	localhost := map[string]string{"MASTER_ADDR": "localhost"}
	for name, test := range map[string]struct {
		launcher, master string
		env              map[string]string
	}{
		"the launcher's name":        {"kubeflow", "node2", nil},
		"a variable":                 {"pals", "", map[string]string{"MASTER_ADDR": "node2"}},
		"the name goes first":        {"kubeflow", "node2", localhost},
		"localhost on rank 0's host": {"kubeflow", "localhost", localhost},
	} {
		c := node(t, "slurm22-batchbody-rank0", 1)
		c.Launcher, c.Master, c.Env = test.launcher, test.master, test.env
		if test.master == "localhost" {
			c.Rank = 0
		}
		p := mustPlan(t, c)
		if p.hosts != (c.Rank == 0) || fmt.Sprint(p.addrs) != "[10.77.0.13]" {
			t.Errorf("%s: rank %d has the plan %+v", name, c.Rank, p)
		}
		if c.Rank > 0 {
			offered(t, p, "10.77.0.12")
			if !strings.Contains(p.hint, `"node2"`) {
				t.Errorf("%s: the hint is %q", name, p.hint)
			}
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"cannot use ports 30000-29999":            func(c *Config) { c.PortLo, c.PortHi = 30000, 29999 },
		"cannot use network \"10.0.0.0/33\"":      func(c *Config) { c.Net = []string{"10.0.0.0/33"} },
		"cannot use network [\"eth7\"]":           func(c *Config) { c.Net = []string{"eth7"}; c.LocalSize = 1 },
		"cannot use store \"node1:http\"":         func(c *Config) { c.Store = "node1:http" },
		"cannot use RDZV_JOIN: not ADDR:PORT/KEY": func(c *Config) { c.Join = "node1" },
		"cannot use RDZV_JOIN: no /KEY":           func(c *Config) { c.Join = "10.0.0.1:29600" },
		"cannot read SLURM_STEP_NODELIST=":        func(c *Config) { c.Env["SLURM_STEP_ID"], c.Env["SLURM_STEP_NODELIST"] = "0", "node["; c.LocalSize = 1 },
	} {
		c := config(t, 1, 2)
		c.LocalSize = 2
		spoil(&c)
		if _, err := Meet(t.Context(), c, noHost(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v", want, err)
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

// nativeWord is four bytes of an address as the kernel of this machine prints them.
func nativeWord(b ...byte) string { return fmt.Sprintf("%08X", binary.NativeEndian.Uint32(b)) }
