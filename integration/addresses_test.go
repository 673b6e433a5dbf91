package integration

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
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
		{"store/network", 3, direct("--store", "node1", "--net", "10.77.0.0/24"), "10.77.0.", first},
		{"store/interface", 3, direct("--store", "node1", "--net", "eth0,lan0"), "10.77.0.", first},
		{"storeAddress/network", 3, direct("--store", "10.77.0.11", "--net", "10.78.0.0/24"),
			"10.78.0.", second},
		{"job/network", 3, indexedJob(""), "10.77.0.", first},
		{"job/store/network", 3, indexedJob("RDZV_STORE=node1"), "10.77.0.", first},
	})
	runAddressCases(t, "six", "--six --ifnames", []addressCase{
		{"multicast", 3, direct(), "fd77::", first},
		{"store", 3, direct("--store", "node2"), "fd77::", first},
		{"storeAddress", 3, direct("--store", "[fd77::13]:29700"), "fd77::13", first},
		{"openmpi", 3, mpiUnlessCrashed, "fd77::", first},
	})
}

// indexedJob has a pod of an Indexed Job on each of three hosts, restricted to their first network.
func indexedJob(variable string) func(p *clusterPlace) []*process {
	return func(p *clusterPlace) (agents []*process) {
		for host := 1; host <= 3; host++ {
			env := []string{"KUBERNETES_SERVICE_HOST=10.96.0.1", "RDZV_NODES=3", "RDZV_NET=10.77.0.0/24",
				"JOB_COMPLETION_INDEX=" + fmt.Sprint(host-1), "RDZV_TOKEN=" + podToken}
			env = append(env, strings.Fields(variable)...)
			agents = append(agents, p.startWith(env, p.cluster.on(host, p.exec()...)...))
		}
		return agents
	}
}

// Without multicast, agents find the store by the name of rank 0's node, also if that resolves to an
// address of a network that they must not use for anything else.
func TestNetworkWithoutMulticast(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "--second", "--wrong", "--nomulticast")
	c.startSlurm(1, 2)
	start := map[string]func(p *clusterPlace) []*process{
		"openmpi": func(p *clusterPlace) []*process {
			line := append(strings.Fields("--host node1,node2 -np 2"), p.exec("--net", "eth0")...)
			return []*process{p.on(1, p.openMPI(line...)...)}
		},
		"slurm": func(p *clusterPlace) []*process {
			line := append(strings.Fields("srun -N2 -n2"), p.exec("--net", "eth0")...)
			return []*process{p.slurm(1, line...)}
		},
	}
	for _, platform := range []string{
		"LWS_GROUP_SIZE=2 LWS_LEADER_ADDRESS=node1 LWS_WORKER_INDEX=",
		"PET_NNODES=2 PET_MASTER_ADDR=node1 PET_NODE_RANK=",
	} {
		name, _, _ := strings.Cut(platform, "_")
		start[name] = func(p *clusterPlace) (agents []*process) {
			for host := 1; host <= 2; host++ {
				env := strings.Fields(platform + fmt.Sprint(host-1) + " RDZV_NET=eth0 " +
					"KUBERNETES_SERVICE_HOST=10.96.0.1 RDZV_TOKEN=" + podToken)
				agents = append(agents, p.startWith(env, p.cluster.on(host, p.exec()...)...))
			}
			return agents
		}
	}
	for name, agents := range start {
		t.Run(name, func(t *testing.T) {
			p := c.newPlace(t)
			all := p.check(layout{"node1", "node2"}, agents(p)...)
			if addr := all[0].Env["MASTER_ADDR"]; addr != "10.77.0.11" {
				t.Errorf("MASTER_ADDR is %q, want 10.77.0.11", addr)
			}
			checkInterfaces(t, all, map[string]string{"node1": "eth0", "node2": "eth0"})
		})
	}
}

// A network to which only some of the nodes are restricted is obeyed on those, or the job does not
// start.
func TestNetworkOfSomeNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "--second")
	const network = "10.78.0.0/24"
	t.Run("store", func(t *testing.T) {
		p := c.newPlace(t)
		restricted := p.exec("--nodes", "2", "--store", "node1", "--net", network)
		all := p.check(layout{"node1", "node2"}, p.on(1, restricted...),
			p.on(2, p.exec("--nodes", "2", "--store", "node1")...))
		if addr := all[0].Env["MASTER_ADDR"]; addr != "10.78.0.11" {
			t.Errorf("MASTER_ADDR is %q, want the one that node1 may use", addr)
		}
		checkInterfaces(t, all, map[string]string{"node1": "eth1", "node2": "eth1"})
	})
	t.Run("refused", func(t *testing.T) {
		p := c.newPlace(t)
		agents := []*process{
			p.on(1, p.exec("--nodes", "2", "--store", "10.77.0.11")...),
			p.on(2, p.exec("--nodes", "2", "--store", "10.77.0.11", "--net", network)...),
		}
		checkCodes(121, agents...)
		checkAllPrint(t, agents, "cannot use --net "+network+": only eth0 (10.77.0.12), which it "+
			"excludes, leads to the store at 10.77.0.11")
	})
	t.Run("kept", func(t *testing.T) {
		p := c.newPlace(t)
		flags := []string{"--nodes", "2", "--store", "node1", "--net", network}
		line := rdzvExec(flags, []string{"sh", "-c", "echo gloo uses $GLOO_SOCKET_IFNAME"})
		var agents []*process
		for host := 1; host <= 2; host++ {
			env := []string{"GLOO_SOCKET_IFNAME=eth0"}
			agents = append(agents, p.startWith(env, p.cluster.on(host, line...)...))
		}
		checkCodes(0, agents...)
		checkAllPrint(t, agents, "gloo uses eth0")
		checkAllPrint(t, agents, "GLOO_SOCKET_IFNAME=eth0 is kept, although --net "+network+
			" excludes eth0")
	})
	t.Run("check", func(t *testing.T) {
		var agents []*process
		for host := 1; host <= 2; host++ {
			agents = append(agents, c.start(c.on(host, *rdzvBin, "check", "--nodes", "2", "--store",
				"node1", "--net", network, "--", "true")...))
		}
		checkCodes(0, agents...)
		checkLines(t, report(t, agents), "address 10.78.0.11, 10.78.0.12",
			"interface eth1 (used to reach the other nodes, allowed by --net "+network+")")
	})
}

// Agents are connected to a shared store over a network that their workers must not use. The store
// itself listens on networks that are not excluded, or does not start.
func TestNetworkOfSharedStore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, "--second")
	start := func(p *clusterPlace, flags ...string) *process {
		return p.on(1, append([]string{*rdzvBin, "store"}, flags...)...)
	}
	t.Run("agents", func(t *testing.T) {
		p := c.newPlace(t)
		store := start(p, "--listen", "10.77.0.11")
		store.waitFor("--store 10.77.0.11:")
		line := p.exec("--nodes", "2", "--store", "10.77.0.11", "--net", "eth1")
		all := p.check(layout{"node2", "node3"}, p.on(2, line...), p.on(3, line...))
		if addr := all[0].Env["MASTER_ADDR"]; addr != "10.78.0.12" {
			t.Errorf("MASTER_ADDR is %q, want 10.78.0.12", addr)
		}
		checkInterfaces(t, all, map[string]string{"node2": "eth1", "node3": "eth1"})
		store.signal(syscall.SIGTERM)
		store.checkCode(0)
	})
	t.Run("excluded", func(t *testing.T) {
		store := start(c.newPlace(t), "--listen", "10.77.0.11", "--net", "eth1")
		store.checkCode(1)
		checkAllPrint(t, []*process{store}, "cannot listen on 10.77.0.11: --net eth1 excludes it")
	})
	t.Run("name", func(t *testing.T) {
		p := c.newPlace(t)
		store := start(p, "--listen", "node1", "--net", "eth1")
		store.waitFor("--store")
		for address, code := range map[string]int{"10.77.0.11": 124, "10.78.0.11": 0} {
			flags := []string{"--nodes", "2", "--join-timeout", "5s", "--store", address}
			line := rdzvExec(flags, []string{"true"})
			checkCodes(code, p.on(2, line...), p.on(3, line...))
		}
		store.signal(syscall.SIGTERM)
		store.checkCode(0)
	})
}

// Nodes that are restricted to different networks do not start.
func TestNetworksOfDifferentNodes(t *testing.T) {
	t.Parallel()
	p := newCluster(t, 3, "--second").newPlace(t)
	var agents []*process
	for host, flags := range []string{"", "--net eth1", "--net eth0"} {
		line := p.exec(append([]string{"--nodes", "3", "--store", "node1"}, strings.Fields(flags)...)...)
		agents = append(agents, p.on(host+1, line...))
	}
	checkCodes(125, agents...)
	checkAllPrint(t, agents, "cannot use --net eth")
	checkAllPrint(t, agents, "which it excludes, leads to rank 0 at 10.7")
}

// checkAllPrint checks that each process has printed a line with the text.
func checkAllPrint(t *testing.T, processes []*process, want string) {
	t.Helper()
	for _, p := range processes {
		if len(p.linesWith(want)) == 0 {
			t.Errorf("a process printed %q, want %q", p.linesWith("rdzv:"), want)
		}
	}
}

// A host with two interfaces in one network connects to others from the first one. Workers are given
// the one that the user has chosen.
func TestInterfaceOfTwoInOneNetwork(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "--second")
	for host := 1; host <= 2; host++ {
		c.run(c.on(host, "ip", "addr", "add", fmt.Sprintf("10.77.0.5%d/24", host), "dev", "eth1"))
	}
	for name, flags := range map[string]string{
		"multicast": "--net 10.77.0.48/29",
		"address":   "--net eth1 --store 10.77.0.51",
		"name":      "--net 10.77.0.48/29 --store node1",
	} {
		t.Run(name, func(t *testing.T) {
			p := c.newPlace(t)
			line := p.exec(append([]string{"--nodes", "2"}, strings.Fields(flags)...)...)
			all := p.check(layout{"node1", "node2"}, p.on(1, line...), p.on(2, line...))
			if addr := all[0].Env["MASTER_ADDR"]; addr != "10.77.0.51" {
				t.Errorf("MASTER_ADDR is %q, want 10.77.0.51", addr)
			}
			checkInterfaces(t, all, map[string]string{"node1": "eth1", "node2": "eth1"})
		})
	}
}

// Each node's address, and that of rank 0, are of the same network.
func TestNodeAddr(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]string{"--second --wrong": "10.78.0.1%d", "--six": "fd77::1%d"} {
		t.Run(options, func(t *testing.T) {
			p := newCluster(t, 2, strings.Fields(options)...).newPlace(t)
			flags := []string{"--nodes", "2", "--store", "node1", "--set", "VLLM_HOST_IP={node_addr}"}
			line := rdzvExec(flags, []string{"sh", "-c", "echo $NODE_RANK: $VLLM_HOST_IP $MASTER_ADDR"})
			agents := []*process{p.on(1, line...), p.on(2, line...)}
			checkCodes(0, agents...)
			for i, agent := range agents {
				checkAllPrint(t, []*process{agent}, fmt.Sprintf("%d: "+want+" "+want, i, i+1, 1))
			}
		})
	}
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
