package integration

import (
	"fmt"
	"slices"
	"testing"
)

// The networks are not what the names say. MASTER_ADDR must lead to rank 0 from every node, and the interface that is
// exported for gloo and its like must be the node's own name of the one that leads there; the peers try both.
func TestAddresses(t *testing.T) {
	hand := func(flags ...string) func(s *stay) []*process {
		return func(s *stay) (all []*process) {
			line := s.exec(append([]string{"--nodes", "3"}, flags...)...)
			for host := 1; host <= 3; host++ {
				all = append(all, s.on(host, line...))
			}
			return all
		}
	}
	mpi := func(s *stay) []*process {
		return []*process{s.on(1, s.openMPI(append([]string{"--host", "node1,node2,node3", "-np", "3"}, s.exec()...)...)...)}
	}
	launchernode := func(s *stay) []*process {
		return []*process{s.on(1, s.openMPI(append([]string{"--host", "node2,node3", "-np", "2"}, s.exec()...)...)...)}
	}
	hydra := func(s *stay) []*process {
		return []*process{s.on(1, s.hydra(append([]string{"-iface", "eth1", "-hosts", "node1,node2,node3", "-ppn", "1", "-np", "3"}, s.exec()...)...)...)}
	}
	storeElsewhere := func(s *stay) []*process { // rank 0 is on node1, and comes to the store by the first network
		last := append([]string{":", "-np", "1"}, s.exec("--store", "10.78.0.12")...)
		line := slices.Concat([]string{"--host", "node1,node2,node3", "-np", "2"}, s.exec("--store", "node2"), last)
		return []*process{s.on(1, s.openMPI(line...)...)}
	}
	type scenario struct {
		name    string
		run     func(s *stay) []*process
		network string            // of MASTER_ADDR; "" is any
		names   map[string]string // of the interface on each host; nil is any
	}
	first := map[string]string{"node1": "eth0", "node2": "lan0", "node3": "eth0"}
	second := map[string]string{"node1": "eth1", "node2": "lan1", "node3": "eth1"}
	for _, bed := range []struct {
		name      string
		options   []string
		scenarios []scenario
	}{
		{"oneNetworkReachesAll", []string{"--second", "--stub", "--docker", "--ifnames"}, []scenario{
			{"multicast", hand(), "10.78.0.", second},
			{"openmpi", mpi, "10.78.0.", second},
			{"openmpi/launchernode", launchernode, "10.78.0.", second},
			{"openmpi/storeElsewhere", storeElsewhere, "10.78.0.11", second},
			{"hydra", hydra, "10.78.0.", second},
		}},
		{"namesOfTheOtherNetwork", []string{"--second", "--wrong", "--docker", "--debian", "--ifnames"}, []scenario{
			{"multicast", hand(), "10.77.0.", first},
			{"store", hand("--store", "node1"), "10.78.0.", second},
			{"openmpi", mpi, "", nil},
			{"network", hand("--net", "10.78.0.0/24"), "10.78.0.", second},
			{"interface", hand("--net", "eth1", "--net", "lan1"), "10.78.0.", second},
			{"notInterface", hand("--net", "!docker0,!eth0,!lan0"), "10.78.0.", second},
			{"docker", hand("--net", "!docker0"), "10.77.0.", first},
		}},
		{"six", []string{"--six", "--ifnames"}, []scenario{
			{"multicast", hand(), "fd77::", first},
			{"store", hand("--store", "node2"), "fd77::", first},
			{"storeAddress", hand("--store", "[fd77::13]:29700"), "fd77::13", first},
			{"openmpi", mpi, "fd77::", first},
		}},
	} {
		t.Run(bed.name, func(t *testing.T) {
			b := newBed(t, 3, bed.options...)
			for _, c := range bed.scenarios {
				t.Run(c.name, func(t *testing.T) {
					s := b.stay(t)
					commands := c.run(s)
					n := 3
					if c.name == "openmpi/launchernode" {
						n = 2
					}
					checkNetwork(t, s.check(make(layout, n), commands...), c.network, c.names)
				})
			}
		})
	}
}

func checkNetwork(t *testing.T, all []record, network string, names map[string]string) {
	t.Helper()
	if addr := all[0].Env["MASTER_ADDR"]; len(addr) < len(network) || addr[:len(network)] != network {
		t.Errorf("MASTER_ADDR is %q, want one of %s", addr, network)
	}
	for rank, r := range all {
		for _, name := range []string{"GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"} {
			want := names[r.Env["WORKER_HOST"]]
			if got := r.Env[name]; names != nil && got != want && got != "="+want {
				t.Errorf("rank %d on %s has %s=%q, want %s", rank, r.Env["WORKER_HOST"], name, got, want)
			}
		}
	}
}

// allReduce is a torch program: all ranks add their numbers up, over gloo.
const allReduce = `
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(t)
sys.stderr.write(f"rank {dist.get_rank()} of {dist.get_world_size()} has the sum {int(t.item())}\n")
dist.destroy_process_group()
`

// Real torch adds up over two hosts, with all that lies at once: docker0 first, the host's own name on loopback, names of
// the network that does not reach all, interfaces with different names, no DNS; then with IPv6 alone.
func TestTorchOnMisleadingNetworks(t *testing.T) {
	for name, options := range map[string][]string{
		"four": {"--second", "--stub", "--docker", "--debian", "--ifnames"},
		"six":  {"--six", "--ifnames", "--nodns"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBed(t, 2, options...).stay(t)
			host := []string{"--host", "node1:2,node2:2", "-np", "4"}
			job := s.on(1, s.openMPI(slices.Concat(host, rdzvExec(joinSoon, []string{python, "-c", allReduce}))...)...)
			if code := job.code(); code != 0 {
				t.Errorf("the job ended with %d", code)
			}
			for rank := range 4 {
				if len(job.linesWith(fmt.Sprintf("rank %d of 4 has the sum 10", rank))) != 1 {
					t.Errorf("rank %d has not told the sum", rank)
				}
			}
		})
	}
}
