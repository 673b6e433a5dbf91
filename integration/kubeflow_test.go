package integration

import (
	"strings"
	"testing"
)

// kubeflowPods are the variables that Kubeflow's operators set in the two pods of a job
// (documented, see envmap/kubeflow.go), and the layout of its workers. node1 stands for the name of
// the headless service of rank 0's pod.
var kubeflowPods = map[string]struct {
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
}

// Pods have no multicast: the agents find the store by the name of rank 0's pod, even one that
// starts before that pod.
func TestKubeflow(t *testing.T) {
	c := newCluster(t, 2, "--nomulticast")
	for name, job := range kubeflowPods {
		t.Run(name, func(t *testing.T) {
			p := c.newPlace(t)
			line := p.exec()
			var agents []*process
			for _, host := range []int{2, 1} {
				env := strings.Fields(job.common + " " + job.pods[host-1])
				agents = append(agents, p.startWith(env, c.on(host, line...)...))
			}
			p.check(job.want, agents...)
		})
	}
}
