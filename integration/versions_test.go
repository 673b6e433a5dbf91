package integration

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// protocolVersion is that of rdzv/internal/protocol; otherVersion has the next one.
const protocolVersion = 5

const versionHint = "rdzv: hint: use the same release of rdzv on all nodes: rdzv version prints it"

// What agents of the two versions say of each other.
var (
	olderHas = otherHas(protocolVersion, protocolVersion+1)
	newerHas = otherHas(protocolVersion+1, protocolVersion)
)

func otherHas(other, own int) string {
	return fmt.Sprintf("has another version of rdzv (protocol %d; this one has protocol %d)", other, own)
}

// Agents of another version of the protocol are refused: each side names the node and both
// versions, says what to do, and none starts a worker.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	c, newer := newCluster(t, 2), otherVersion.path(t)
	c.startSlurm(1, 2)
	soon := []string{"--join-timeout", "8s"}
	two := append(slices.Clone(soon), "--nodes", "2")
	// agents starts one of this version on node1 and one of the other version on node2.
	agents := func(p *clusterPlace, env [2]string, flags ...string) (older, newerOne *process) {
		line := rdzvExec(flags, []string{"touch", p.dir("job") + "/started"})
		other := append([]string{newer}, line[1:]...)
		token := "RDZV_TOKEN=" + oneToken
		older = p.startWith(append(strings.Fields(env[0]), token), p.cluster.on(1, line...)...)
		newerOne = p.startWith(append(strings.Fields(env[1]), token), p.cluster.on(2, other...)...)
		return older, newerOne
	}
	const pods = "PET_NNODES=2 PET_MASTER_ADDR=node1 PET_NODE_RANK="
	ways := map[string]struct {
		env   [2]string
		flags []string
	}{
		"multicast":            {flags: two},
		"--store":              {flags: append(two, "--store", "node1")},
		"--store and port":     {flags: append(two, "--store", "node1:29777")},
		"--insecure":           {flags: append(two, "--store", "node1", "--insecure")},
		"--insecure multicast": {flags: append(two, "--insecure")},
		"pods":                 {[2]string{pods + "0", pods + "1"}, soon},
	}
	var scenarios []scenario
	for name, way := range ways {
		scenarios = append(scenarios, scenario{name, func(t *testing.T) {
			p := c.newPlace(t)
			older, newerOne := agents(p, way.env, way.flags...)
			checkCodes(124, older, newerOne)
			p.checkVersions(older, newerOne)
		}})
	}
	scenarios = append(scenarios, scenario{"the hosts of a launcher", func(t *testing.T) {
		p := c.newPlace(t)
		line := quoted(rdzvExec(soon, []string{"touch", p.dir("job") + "/started"})[1:])
		script := "[ $SLURM_PROCID = 0 ] || exec " + newer + " " + line + "; exec " +
			quoted([]string{*rdzvBin}) + " " + line
		job := p.slurm(1, "srun", "-N2", "--ntasks-per-node=1", "sh", "-c", script)
		job.checkCode(124)
		p.checkVersions(job, job)
	}}, scenario{"rdzv store", func(t *testing.T) {
		p := c.newPlace(t)
		store := p.on(1, *rdzvBin, "store")
		store.waitFor("--store node1:")
		at := strings.Fields(store.linesWith("--store node1:")[0])
		line := append([]string{newer}, rdzvExec(append(at, two...), []string{"true"})[1:]...)
		refused := p.on(2, line...)
		refused.checkCode(124)
		store.waitFor("refused a connection: node2 (10.77.0.12) " + newerHas)
		refused.waitFor("node1 (10.77.0.11) " + olderHas)
		refused.waitFor(versionHint)
		store.interrupt()
		store.checkCode(0)
	}})
	runConcurrently(t, scenarios)
}

// checkVersions checks what agents of two versions on node1 and node2 print.
func (p *clusterPlace) checkVersions(older, newer *process) {
	p.t.Helper()
	older.waitFor("node2 (10.77.0.12) " + newerHas)
	newer.waitFor("node1 (10.77.0.11) " + olderHas)
	older.waitFor(versionHint)
	newer.waitFor(versionHint)
	older.waitFor("timed out after 8s (--join-timeout): ")
	if started, _ := filepath.Glob(p.dir("job") + "/started"); len(started) > 0 {
		p.t.Error("a worker was started")
	}
}

// In an etcd cluster the later agent finds the run of the others.
func TestOtherVersionInEtcd(t *testing.T) {
	t.Parallel()
	e, newer := startEtcd(t, 2, etcdOptions{program: distributionEtcd(t)}), otherVersion.path(t)
	p := e.newPlace(t)
	first, second := e.agentHosts[0], e.agentHosts[1]
	flags := append(e.flags(), "--nodes", "2", "--job", "mixed", "--join-timeout", "20s")
	line := rdzvExec(flags, []string{"true"})
	older := p.on(first, append(line[:2:2], append([]string{"-v"}, line[2:]...)...)...)
	older.waitFor("connected to the store at ")
	refused := p.on(second, append([]string{newer}, line[1:]...)...)
	refused.checkCode(125)
	refused.waitFor(`cannot join job "mixed": node4, which runs the job, ` + olderHas)
	refused.waitFor(versionHint)
	older.checkCode(124)

	// When the older job is over, its name is free.
	again := append([]string{newer}, line[1:]...)
	checkCodes(0, p.on(first, again...), p.on(second, again...))
}
