package integration

import (
	"fmt"
	"testing"
	"time"
)

// interfacePairs makes so many pairs of network interfaces with an address each.
const interfacePairs = `i=0
while [ $i -lt %d ]; do
	i=$((i + 1))
	echo "link add va$i type veth peer name vb$i"
	echo "addr add 198.18.$((i / 250)).$((i %% 250 + 1))/32 dev va$i"
	echo "addr add 198.19.$((i / 250)).$((i %% 250 + 1))/32 dev vb$i"
	echo "link set va$i up"
	echo "link set vb$i up"
done | %sip -batch -`

// A host of containers has hundreds of network interfaces. The agent lists them a few times, not for
// each worker, and the kernel lists their addresses once each time, not for each interface.
func TestManyInterfaces(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	processorTime := func() (used time.Duration) {
		line := rdzvExec([]string{"--nodes", "2", "--store", "node1", "--nproc-per-node", "32"},
			[]string{"true"})
		agents := []*process{c.start(c.on(1, line...)...), c.start(c.on(2, line...)...)}
		checkCodes(0, agents...)
		for _, agent := range agents {
			used += agent.cmd.ProcessState.UserTime() + agent.cmd.ProcessState.SystemTime()
		}
		return used
	}
	few := processorTime()
	for host := 1; host <= 2; host++ {
		c.run(c.on(host, "sh", "-c", fmt.Sprintf(interfacePairs, 300, sudo())))
	}
	many := processorTime()
	t.Logf("processor time with 2 interfaces %v, with 602 %v", few, many)
	if many > few+3*time.Second { // 0.7 s more, as measured
		t.Errorf("with 600 more interfaces the agents used %v of processor time, without them %v",
			many, few)
	}
}
