package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// An addressCase is a job with a rank on each host, whose MASTER_ADDR and interface must be of the
// network that connects all hosts.
type addressCase struct {
	name       string
	hosts      int
	start      func(p *clusterPlace) []*process // nil if the launcher crashes by itself
	masterAddr string                           // prefix of MASTER_ADDR
	interfaces map[string]string                // by host; nil is any
}

// On misleading networks MASTER_ADDR leads to rank 0 from every node, and the interface for gloo
// and similar libraries is the node's name of the one that leads there. The peers use both.
func TestAddresses(t *testing.T) {
	t.Parallel()
	direct := func(flags ...string) func(p *clusterPlace) []*process {
		return func(p *clusterPlace) (agents []*process) {
			line := p.exec(append([]string{"--nodes", "3"}, flags...)...)
			for host := 1; host <= 3; host++ {
				agents = append(agents, p.on(host, line...))
			}
			return agents
		}
	}
	one := func(start func(p *clusterPlace) *process) func(p *clusterPlace) []*process {
		return func(p *clusterPlace) []*process {
			if job := start(p); job != nil {
				return []*process{job}
			}
			return nil
		}
	}
	const onThree = "--host node1,node2,node3 -np 3"
	mpi := one(openMPIJob(onThree))
	// Open MPI 5.0.7 crashes on hosts without IPv4.
	mpiUnlessCrashed := one(func(p *clusterPlace) *process {
		return p.unlessMpirunCrashed(openMPIJob(onThree)(p), strings.Fields(onThree+" true")...)
	})
	remote := one(openMPIJob("--host node2,node3 -np 2"))
	hydra := one(hydraJob("-iface eth1 -hosts node1,node2,node3 -ppn 1 -np 3"))
	first := map[string]string{"node1": "eth0", "node2": "lan0", "node3": "eth0"}
	second := map[string]string{"node1": "eth1", "node2": "lan1", "node3": "eth1"}

	runAddressCases(t, "oneNetworkReachesAll", "--second --stub --docker --ifnames", []addressCase{
		{"multicast", 3, direct(), "10.78.0.", second},
		{"openmpi", 3, mpi, "10.78.0.", second},
		{"openmpi/remote", 2, remote, "10.78.0.", second},
		{"openmpi/storeElsewhere", 3, one(jobWithTwoStores), "10.78.0.11", second},
		{"hydra", 3, hydra, "10.78.0.", second},
	})
	options := "--second --wrong --docker --debian --ifnames"
	runAddressCases(t, "namesOfTheOtherNetwork", options, []addressCase{
		{"multicast", 3, direct(), "10.77.0.", first},
		{"store", 3, direct("--store", "node1"), "10.78.0.", second},
		{"openmpi", 3, mpi, "", nil},
		{"network", 3, direct("--net", "10.78.0.0/24"), "10.78.0.", second},
		{"interface", 3, direct("--net", "eth1", "--net", "lan1"), "10.78.0.", second},
		{"notInterface", 3, direct("--net", "!docker0,!eth0,!lan0"), "10.78.0.", second},
		{"docker", 3, direct("--net", "!docker0"), "10.77.0.", first},
	})
	runAddressCases(t, "six", "--six --ifnames", []addressCase{
		{"multicast", 3, direct(), "fd77::", first},
		{"store", 3, direct("--store", "node2"), "fd77::", first},
		{"storeAddress", 3, direct("--store", "[fd77::13]:29700"), "fd77::13", first},
		{"openmpi", 3, mpiUnlessCrashed, "fd77::", first},
	})
}

// jobWithTwoStores has rank 0 on node1 and the store on node2. The agents of different ranks reach
// it by different networks.
func jobWithTwoStores(p *clusterPlace) *process {
	line := strings.Fields("--host node1,node2,node3 -np 3 sh -c")
	line = append(line, `export RDZV_STORE=node2
		[ $OMPI_COMM_WORLD_RANK != 2 ] || RDZV_STORE=10.78.0.12; exec "$@"`, "sh")
	return p.on(1, p.openMPI(append(line, p.exec()...)...)...)
}

func runAddressCases(t *testing.T, name, options string, cases []addressCase) {
	t.Run(name, func(t *testing.T) {
		c := newCluster(t, 3, strings.Fields(options)...)
		for _, a := range cases {
			t.Run(a.name, func(t *testing.T) {
				p := c.newPlace(t)
				commands := a.start(p)
				if commands == nil {
					t.Skip(mpirunCrashes)
				}
				all := p.check(make(layout, a.hosts), commands...)
				if addr := all[0].Env["MASTER_ADDR"]; !strings.HasPrefix(addr, a.masterAddr) {
					t.Errorf("MASTER_ADDR is %q, want one of %s", addr, a.masterAddr)
				}
				if a.interfaces != nil {
					checkInterfaces(t, all, a.interfaces)
				}
			})
		}
	})
}

func checkInterfaces(t *testing.T, all []record, want map[string]string) {
	t.Helper()
	for rank, r := range all {
		host := r.Env["WORKER_HOST"]
		for _, name := range []string{"GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"} {
			// For NCCL, "=eth1" means exactly this one.
			if got := strings.TrimPrefix(r.Env[name], "="); got != want[host] {
				t.Errorf("rank %d on %s has %s=%q, want %s", rank, host, name, r.Env[name],
					want[host])
			}
		}
	}
}

// allReduce is a torch program: all ranks add up their numbers, over gloo.
const allReduce = `
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(t)
sys.stderr.write(f"rank {dist.get_rank()} of {dist.get_world_size()} has the sum {int(t.item())}\n")
dist.destroy_process_group()
`

// torch runs on two hosts with all misleading properties at once: docker0 is the first interface, a
// host's own name resolves to loopback, names resolve to the network that does not reach all,
// interfaces have different names; then with IPv6 only and without DNS.
func TestTorchOnMisleadingNetworks(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]string{
		"four": {"--second", "--stub", "--docker", "--debian", "--ifnames"},
		"six":  {"--six", "--ifnames", "--nodns"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newCluster(t, 2, options...).newPlace(t)
			commands := p.torchJob()
			checkCodes(0, commands...)
			for rank := range 4 {
				want := fmt.Sprintf("rank %d of 4 has the sum 10", rank)
				var lines []string
				for _, command := range commands {
					lines = append(lines, command.linesWith(want)...)
				}
				if len(lines) != 1 {
					t.Errorf("%q was printed %d times, want once", want, len(lines))
				}
			}
		})
	}
}

// torchJob runs two ranks of allReduce on each of two hosts: under Open MPI, or without a launcher
// if its mpirun crashes there, as 5.0.7 does on hosts without IPv4.
func (p *clusterPlace) torchJob() []*process {
	program := []string{python, "-c", allReduce}
	hosts := []string{"--host", "node1:2,node2:2", "-np", "4"}
	job := p.on(1, p.openMPI(slices.Concat(hosts, rdzvExec(joinSoon, program))...)...)
	if p.unlessMpirunCrashed(job, append(hosts, "true")...) != nil {
		return []*process{job}
	}
	nodes := []string{"--nodes", "2", "--nproc-per-node", "2"}
	line := rdzvExec(slices.Concat(joinSoon, nodes), program)
	return []*process{p.on(1, line...), p.on(2, line...)}
}
