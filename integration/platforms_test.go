package integration

import (
	"strings"
	"testing"
)

// platformPods are the variables that platforms set on the two nodes of a job (documented, see
// envmap/platforms.go), and the layout of its workers. node1 stands for the name or address by which
// they name rank 0's node.
var platformPods = map[string]struct {
	common string
	pods   [2]string
	want   layout
}{
	"TrainJob": {
		"PET_NNODES=2 PET_NPROC_PER_NODE=2 PET_MASTER_ADDR=node1 PET_MASTER_PORT=29400",
		[2]string{"PET_NODE_RANK=0", "PET_NODE_RANK=1"},
		layout{"node1", "node1", "node2", "node2"},
	},
	"PyTorchJob": {
		"WORLD_SIZE=2 MASTER_PORT=23456 KUBERNETES_SERVICE_HOST=10.96.0.1",
		[2]string{"RANK=0 MASTER_ADDR=localhost", "RANK=1 MASTER_ADDR=node1"},
		layout{"node1", "node2"},
	},
	"PyTorchJob with torchrun's variables": {
		"WORLD_SIZE=4 PET_NNODES=2 PET_NPROC_PER_NODE=2 KUBERNETES_SERVICE_HOST=10.96.0.1",
		[2]string{
			"RANK=0 PET_NODE_RANK=0 MASTER_ADDR=localhost PET_MASTER_ADDR=localhost",
			"RANK=1 PET_NODE_RANK=1 MASTER_ADDR=node1 PET_MASTER_ADDR=node1",
		},
		layout{"node1", "node1", "node2", "node2"},
	},
	"LeaderWorkerSet": {
		"LWS_GROUP_SIZE=2 LWS_LEADER_ADDRESS=node1 KUBERNETES_SERVICE_HOST=10.96.0.1",
		[2]string{"LWS_WORKER_INDEX=0", "LWS_WORKER_INDEX=1"},
		layout{"node1", "node2"},
	},
	"Volcano": {
		"VC_WORKER_NUM=2 VC_WORKER_HOSTS=node1,node2 KUBERNETES_SERVICE_HOST=10.96.0.1",
		[2]string{"VC_TASK_INDEX=0", "VC_TASK_INDEX=1"},
		layout{"node1", "node2"},
	},
	"SkyPilot": { // separated by line ends, which strings.Fields would remove here
		"SKYPILOT_NUM_NODES=2 SKYPILOT_NUM_GPUS_PER_NODE=2 SKYPILOT_NODE_IPS=10.77.0.11",
		[2]string{"SKYPILOT_NODE_RANK=0", "SKYPILOT_NODE_RANK=1"},
		layout{"node1", "node1", "node2", "node2"},
	},
	"dstack": {
		"DSTACK_NODES_NUM=2 DSTACK_MASTER_NODE_IP=10.77.0.11 DSTACK_GPUS_PER_NODE=2",
		[2]string{"DSTACK_NODE_RANK=0", "DSTACK_NODE_RANK=1"},
		layout{"node1", "node1", "node2", "node2"},
	},
	"Beaker": {
		"BEAKER_REPLICA_COUNT=2 BEAKER_LEADER_REPLICA_HOSTNAME=node1 BEAKER_ASSIGNED_GPU_COUNT=2",
		[2]string{"BEAKER_REPLICA_RANK=0", "BEAKER_REPLICA_RANK=1"},
		layout{"node1", "node1", "node2", "node2"},
	},
	"RunPod": {
		"RUNPOD_POD_ID=x NUM_NODES=2 NUM_TRAINERS=2 WORLD_SIZE=4 PRIMARY_ADDR=10.77.0.11",
		[2]string{"NODE_RANK=0", "NODE_RANK=1"},
		layout{"node1", "node1", "node2", "node2"},
	},
	"JobSet": {
		"RDZV_NODES=2 JOB_COMPLETION_INDEX=0 JOBSET_COORDINATOR=node1",
		[2]string{"JOBSET_JOB_GLOBAL_INDEX=0", "JOBSET_JOB_GLOBAL_INDEX=1"},
		layout{"node1", "node2"},
	},
}

// podToken is the UID of a Job, which its pods have in common.
const podToken = "6f1c1b1e-6f0b-4e5e-9d3c-1d2f3a4b5c6d"

// Nodes of platforms have no multicast: the agents find the store by the name of rank 0's node, even
// one that starts before that node.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "--nomulticast")
	t.Run("different tokens", func(t *testing.T) { c.newPlace(t).podRefused() })
	for name, job := range platformPods {
		t.Run(name, func(t *testing.T) {
			p := c.newPlace(t)
			line := p.exec()
			var agents []*process
			for _, host := range []int{2, 1} {
				env := strings.Fields(job.common + " " + job.pods[host-1] + " RDZV_TOKEN=" + podToken)
				agents = append(agents, p.startWith(env, c.on(host, line...)...))
			}
			p.check(job.want, agents...)
		})
	}
}

// podRefused checks what the agents say if each pod has a token of its own.
func (p *clusterPlace) podRefused() {
	job := platformPods["PyTorchJob"]
	line := rdzvExec([]string{"--join-timeout", "6s"}, []string{"true"})
	var agents []*process
	for i, token := range []string{oneToken, otherToken} {
		host := i + 1
		env := append(strings.Fields(job.common+" "+job.pods[host-1]), "RDZV_TOKEN="+token)
		agents = append(agents, p.startWith(env, p.cluster.on(host, line...)...))
	}
	checkCodes(124, agents...)
	const hint = "rdzv: hint: set the same RDZV_TOKEN in all pods of the job, from a Secret"
	const missing = "1 of 2 tasks joined; rank 1 is missing; " +
		"refused because of a different token: node2 (10.77.0.12)"
	for _, agent := range agents {
		if len(agent.linesWith(hint)) != 1 {
			p.t.Errorf("an agent did not print %q once", hint)
		}
		rank0 := len(agent.linesWith("node2 (10.77.0.12) has a different token")) > 0
		if rank0 && len(agent.linesWith("timed out after 6s (--join-timeout): "+missing)) == 0 {
			p.t.Errorf("rank 0's agent did not print %q", missing)
		}
		if lines := agent.linesWith("launcher's messages"); len(lines) > 0 {
			p.t.Errorf("an agent named a launcher: %q", lines)
		}
	}
}

// Two groups of a LeaderWorkerSet, of one command with one token, do not meet, although multicast
// connects their pods: a worker whose leader is late does not join the other group.
func TestGroupsDoNotMeet(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	p := c.newPlace(t)
	pod := func(host int, leader, index string, flags ...string) *process {
		env := []string{"LWS_GROUP_SIZE=2", "LWS_LEADER_ADDRESS=" + leader, "LWS_WORKER_INDEX=" + index,
			"RDZV_TOKEN=" + podToken}
		return p.startWith(env, c.on(host, rdzvExec(flags, sh(`echo "$RANK at $MASTER_ADDR"`))...)...)
	}
	early := pod(2, "node3", "1", "-v")
	early.waitFor("started by lws")
	other := pod(1, "node1", "0", "--join-timeout", "5s")
	other.checkCode(124)
	leader := pod(3, "node3", "0")
	checkCodes(0, early, leader)
	early.waitFor("1 at 10.77.0.13")
}
