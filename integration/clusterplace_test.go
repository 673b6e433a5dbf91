package integration

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A bed is a cluster on which one story is told after another, each in a place of its own.
type bed struct{ *cluster }

func newBed(t *testing.T, n int, options ...string) *bed {
	t.Helper()
	return &bed{newCluster(t, n, options...)}
}

// withSlurm starts Slurm on hosts first to last, its controller being on host 1. It goes with the hosts.
func (b *bed) withSlurm(first, last int) {
	b.t.Helper()
	b.run(b.slurm("up", strconv.Itoa(first), strconv.Itoa(last)))
}

// A stay is one story's place on a bed.
type stay struct {
	*place
	bed *bed
}

func (b *bed) stay(t *testing.T) *stay {
	t.Helper()
	return &stay{newPlace(t), b}
}

// on starts a command on a host.
func (s *stay) on(host int, argv ...string) *process {
	s.t.Helper()
	return s.start(s.bed.on(host, argv...)...)
}

// openMPI is mpirun with these arguments, to be run on one of the hosts.
func (s *stay) openMPI(args ...string) []string {
	return append([]string{mpirun, "--oversubscribe", "--mca", "plm_rsh_agent", s.bed.remoteShell(s.place)}, args...)
}

// hydra is the same of MPICH's mpiexec.
func (s *stay) hydra(args ...string) []string {
	return append([]string{"mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", s.bed.remoteShell(s.place)}, args...)
}

// slurm starts a command of Slurm on a host.
func (s *stay) slurm(host int, argv ...string) *process {
	s.t.Helper()
	return s.start(append(s.bed.slurm("on", strconv.Itoa(host)), argv...)...)
}

// batch starts a batch script with options of sbatch, and waits for it as srun does; see batchOutput.
func (s *stay) batch(options []string, script ...string) *process {
	s.t.Helper()
	file := filepath.Join(s.root, "batch")
	if err := os.WriteFile(file, []byte("#!/bin/sh\nexec "+quoted(script)+"\n"), 0o700); err != nil {
		s.t.Fatal(err)
	}
	return s.slurm(1, slices.Concat([]string{"sbatch", "-W", "-o", filepath.Join(s.root, "batch.out")}, options, []string{file})...)
}

// batchOutput is what the batch script has said.
func (s *stay) batchOutput() string {
	text, _ := os.ReadFile(filepath.Join(s.root, "batch.out"))
	return string(text)
}

func quoted(words []string) string {
	var list []string
	for _, w := range words {
		list = append(list, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(list, " ")
}

// joinSoon gives up soon: a job that does not meet is to fail the test with what was tried.
var joinSoon = []string{"--join-timeout", "20s"}

// exec is rdzv exec with flags and a peer that notes itself in the place's directory "job".
func (s *stay) exec(flags ...string) []string {
	return rdzvExec(append(slices.Clone(joinSoon), flags...), peerLine(s.dir("job")))
}

// layout is who is expected where: the host of each rank.
type layout []string

// check waits for the commands that make up one job, and checks that it was a good one: all ranks were on their hosts, told
// the same and the right things, found each other, and rdzv was silent. It returns the records.
func (s *stay) check(want layout, commands ...*process) []record {
	s.t.Helper()
	for _, c := range commands {
		if code := c.code(); code != 0 {
			s.t.Errorf("%q ended with %d\n%s", c.argv, code, s.batchOutput())
		}
		if said := c.linesWith("rdzv:"); len(said) > 0 {
			s.t.Errorf("a job that goes well is silent, and said %q", said)
		}
	}
	all := records(s.t, filepath.Join(s.root, "job"), len(want))
	s.t.Logf("the last of %d workers began after %v", len(all), s.began(commands[0]).Round(time.Millisecond))
	checkLayout(s.t, all, want)
	return all
}

// began is how long after the command the last worker of the job noted itself.
func (s *stay) began(command *process) time.Duration {
	files, _ := filepath.Glob(filepath.Join(s.root, "job", "*.json"))
	var last time.Time
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last.Sub(command.started)
}

// checkLayout checks what each rank was told, given the host of each; "" is any.
func checkLayout(t *testing.T, all []record, want layout) {
	t.Helper()
	local, node := map[string]int{}, map[string]string{}
	for rank, r := range all {
		host := r.Env["WORKER_HOST"]
		if want[rank] != "" && host != want[rank] {
			t.Errorf("rank %d ran on %s, not on %s", rank, host, want[rank])
		}
		if _, known := node[host]; !known {
			node[host] = r.Env["NODE_RANK"]
		}
		for name, told := range map[string]string{
			"WORLD_SIZE": strconv.Itoa(len(all)), "LOCAL_RANK": strconv.Itoa(local[host]), "NODE_RANK": node[host], "GROUP_RANK": node[host],
		} {
			if r.Env[name] != told {
				t.Errorf("rank %d on %s has %s=%q, want %s", rank, host, name, r.Env[name], told)
			}
		}
		local[host]++
		for _, name := range []string{"MASTER_ADDR", "MASTER_PORT", "RDZV_RUN_ID", "GROUP_WORLD_SIZE", "RDZV_DETECTED"} {
			if r.Env[name] != all[0].Env[name] {
				t.Errorf("rank %d has %s=%q, rank 0 has %q", rank, name, r.Env[name], all[0].Env[name])
			}
		}
	}
	for rank, r := range all {
		if n := strconv.Itoa(local[r.Env["WORKER_HOST"]]); r.Env["LOCAL_WORLD_SIZE"] != n {
			t.Errorf("rank %d has LOCAL_WORLD_SIZE=%q, want %s", rank, r.Env["LOCAL_WORLD_SIZE"], n)
		}
	}
	checkNodes(t, all[0], node)
}

// checkNodes: the nodes are numbered from 0, in whatever order the launcher has them.
func checkNodes(t *testing.T, first record, node map[string]string) {
	t.Helper()
	if n := strconv.Itoa(len(node)); first.Env["GROUP_WORLD_SIZE"] != n {
		t.Errorf("GROUP_WORLD_SIZE is %q, want %s", first.Env["GROUP_WORLD_SIZE"], n)
	}
	numbers := slices.Sorted(maps.Values(node))
	for i, number := range numbers {
		if number != strconv.Itoa(i) {
			t.Errorf("the nodes are numbered %q", numbers)
		}
	}
}
