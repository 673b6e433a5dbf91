package integration

import (
	"slices"
	"strings"
	"syscall"
	"testing"
)

// connected is a program whose rank 0 has a connection to every other rank. Each rank fails when it
// loses one.
const connected = `
import os, select, socket, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
at = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
peers = []
if rank == 0:
    server = socket.create_server(("", at[1]))
    peers = [server.accept()[0] for _ in range(size - 1)]
    for peer in peers:
        peer.send(b"never read: the end of the peer resets the connection")
else:
    while not peers:
        try:
            peers = [socket.create_connection(at)]
        except ConnectionRefusedError:
            time.sleep(0.05)
    select.select(peers, [], [])
if rank == 0:
    print("all are connected", flush=True)
    for peer in select.select(peers, [], [])[0]:
        peer.recv(1)
time.sleep(1000)
`

// An agent is killed, so that its runner kills its workers and rank 0 loses the connection to
// them. In etcd and in rdzv store the loss of the agent becomes known only when its lease expires. It
// is the reason nevertheless.
func TestLostAgentIsTheCause(t *testing.T) {
	t.Parallel()
	e := startEtcd(t, 0, etcdOptions{program: distributionEtcd(t), before: 3})
	test := func(shared bool, restarts string, check func(*replacedJob)) func(*testing.T) {
		return func(t *testing.T) {
			j, store := e.replacedJob(t, 0), e.flags()
			if shared {
				var process *process
				process, store = j.startShared(1)
				defer process.signal(syscall.SIGTERM)
			}
			j.flags = slices.Concat(j.flags, store, []string{"--nodes", "3", "--nproc-per-node", "1",
				"--peer-timeout", "5s", "--join-timeout", "1m", "--max-restarts", restarts})
			j.program = []string{python, "-c", connected}
			for host, rank := range map[int]string{1: "0", 2: "1", 3: "2"} {
				j.startAgent(host, "--node-rank", rank)
			}
			j.agents[1].waitFor("all are connected")
			kill(j.agents[3].pid())
			check(j)
		}
	}
	const lost = "lost the agent of rank 2 (pid "
	ends := func(j *replacedJob) {
		for _, host := range []int{1, 2} {
			agent := j.agents[host]
			agent.checkCode(123)
			lines := agent.linesWith("rdzv: " + lost)
			if len(lines) != 1 || !strings.HasSuffix(lines[0], "on node3): it disconnected unexpectedly") ||
				len(agent.linesWith("failed first")) > 0 {
				j.t.Errorf("the agent on node%d printed %q", host, agent.linesWith("rdzv: "))
			}
		}
	}
	waits := func(j *replacedJob) {
		for _, host := range []int{1, 2} {
			j.agents[host].waitFor("; waiting up to 1m0s for an agent in place of node3 (rank 2) (restart 1 of 1)")
			if lines := j.agents[host].linesWith(lost, "waiting up to 1m0s"); len(lines) != 1 {
				j.t.Errorf("the agent on node%d printed %q", host, j.agents[host].linesWith("rdzv: "))
			}
		}
		j.term(1, 2) // both: the job does not go on
		for _, host := range []int{1, 2} {
			j.agents[host].checkCode(128 + int(syscall.SIGTERM))
		}
	}
	runConcurrently(t, []scenario{
		{"etcd", test(false, "0", ends)},
		{"etcd with restarts", test(false, "1", waits)},
		{"rdzv store", func(t *testing.T) {
			for name, scenario := range map[string]func(*testing.T){
				"without restarts": test(true, "0", ends), "with restarts": test(true, "1", waits),
			} {
				t.Run(name, scenario)
			}
		}},
	})
}
