package integration

import (
	"fmt"
	"strings"
	"testing"
)

// pods gives two hosts the names of an Indexed Job's pods, and what the kubelet writes to their
// /etc/hosts: each knows itself alone.
func (c *cluster) pods() {
	c.t.Helper()
	for k := range 2 {
		c.rootOn(k+1, fmt.Sprintf(`hostname train-%d && printf '10.77.0.%d\ttrain-%[1]d.svc.ns.svc.`+
			`cluster.local\ttrain-%[1]d\n' >> /etc/hosts`, k, 11+k))
	}
}

// nameFirstPod makes pod 1 resolve the name of pod 0, as a cluster's name server does when pod 0
// has an address.
func (c *cluster) nameFirstPod() {
	c.t.Helper()
	c.rootOn(2, `printf '10.77.0.11\ttrain-0.svc\n' >> /etc/hosts`)
}

// rootOn runs a shell command on a host as root.
func (c *cluster) rootOn(host int, command string) {
	c.t.Helper()
	c.run(asRootOnHost(c.on(host, "sh", "-c", command)))
}

// pod starts the agent of a pod, to which Kubernetes gives its index only.
func (p *clusterPlace) pod(index int) *process {
	env := []string{"KUBERNETES_SERVICE_HOST=10.96.0.1", "RDZV_NODES=2",
		"RDZV_TOKEN=" + podToken, fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index)}
	program := []string{"sh", "-c", `echo "rank $RANK of $WORLD_SIZE on $(hostname)"`}
	line := rdzvExec([]string{"-v"}, program)
	return p.startWith(env, p.cluster.on(index+1, line...)...)
}

// podsRan checks that each pod was a rank of one job.
func podsRan(pods ...*process) {
	checkCodes(0, pods...)
	for i, pod := range pods {
		pod.waitFor(fmt.Sprintf("rank %d of %d on train-%[1]d", i, len(pods)))
	}
}

// The pods of an Indexed Job find the first one by their own name. Its name appears late, with the
// pod: that is a normal start.
func TestIndexedJob(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "--nodns", "--nomulticast")
	c.pods()
	p := c.newPlace(t)
	second := p.pod(1)
	second.waitFor("started by kubernetes")
	c.nameFirstPod()
	first := p.pod(0)
	podsRan(first, second)
	for _, text := range []string{"does not resolve", "no store at", "hint:"} {
		if lines := second.linesWith(text); len(lines) > 0 {
			t.Errorf("pod 1 printed %q", lines)
		}
	}
}

// A name that does not resolve for 10 s, or leads to nothing that listens, is reported, and tried
// again.
func TestLateNames(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]struct {
		named        bool
		report, hint string
	}{
		"no name": {false, `"train-0.svc" does not resolve (10s)`,
			"there is a headless Service of that name, with publishNotReadyAddresses; " +
				"the name is resolved again until --join-timeout"},
		"nobody listens": {true, "no store at train-0.svc 10.77.0.11 (8 ports tried): ",
			`rank 0's agent hosts the store on host "train-0.svc": is it running? It is tried again`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 2, "--nodns", "--nomulticast")
			c.pods()
			if wait.named {
				c.nameFirstPod()
			}
			p := c.newPlace(t)
			second := p.pod(1)
			second.waitFor(wait.report)
			second.waitFor(wait.hint)
			for _, line := range second.linesWith("train-0.svc", "port ") {
				if !strings.Contains(line, "connection refused (10s)") {
					t.Errorf("reported %q, want connection refused after 10s", line)
				}
			}
			if !wait.named {
				c.nameFirstPod()
			}
			podsRan(p.pod(0), second)
		})
	}
}
