package integration

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The tasks of a node share an agent, under each launcher; if that is named, each has one.
func TestNodeAgent(t *testing.T) {
	t.Parallel()
	for _, l := range launchers[1:] {
		t.Run(l.name, func(t *testing.T) {
			p := l.place(t)
			for setting, agents := range map[string]int{"": 1, choice(l.name): 4} {
				dir := p.dir("job" + setting)
				env := []string{"RDZV_LAUNCHER=" + setting}
				job := p.startWith(env, l.command(p, 4, []string{"-v"}, worker("record", dir))...)
				job.checkCode(0)
				checkEnvironments(t, records(t, dir, 4))
				if n := len(job.linesWith("rdzv: started by ")); n != agents {
					t.Errorf("RDZV_LAUNCHER=%s: %d agents, want %d", setting, n, agents)
				}
			}
		})
	}
}

// Tasks that cannot share an agent have their own, or meet when the first one is late, and the job
// is complete in each case.
func TestNodeAgentFallbacks(t *testing.T) {
	t.Parallel()
	withoutNumber := 1 // mpirun 4 says that there is one node
	if openMPI5 {
		withoutNumber = 4
	}
	for name, c := range map[string]struct {
		before string // what each task does before it executes "$rdzv" exec, in $in
		flags  string
		agents int
	}{
		"nothing":                {"", "-v", 1},
		"the first task is late": {"[ $OMPI_COMM_WORLD_LOCAL_RANK != 0 ] || sleep 1", "-v", 1},
		"another task is late":   {"[ $OMPI_COMM_WORLD_LOCAL_RANK != 2 ] || sleep 4", "-v", 2},
		"another command line":   {"", "-v --grace 1${OMPI_COMM_WORLD_RANK}s", 4},
		"another directory":      {"mkdir -p $OMPI_COMM_WORLD_RANK; cd $OMPI_COMM_WORLD_RANK", "-v", 4},
		"a variable of one task": {"[ $OMPI_COMM_WORLD_RANK != 3 ] || export RDZV_GRACE=3s", "-v", 2},
		"a launcher is named":    {"", "-v --launcher openmpi", 4},
		"another file":           {`[ $OMPI_COMM_WORLD_RANK != 3 ] || { cp "$rdzv" r; rdzv=./r; }`, "-v", 2},
		"the second exec":        {`"$rdzv" exec -- true`, "-v", 1},
		"no number of tasks":     {"unset OMPI_COMM_WORLD_LOCAL_SIZE", "-v", withoutNumber},
		"a container per task":   {`in="unshare --user --map-root-user --mount"`, "-v", 4},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			dir := p.dir("job")
			script := fmt.Sprintf(`cd %q; rdzv=$0 in=; %s; exec $in "$rdzv" exec %s -- "$@"`, p.root,
				orTrue(c.before), c.flags)
			began := time.Now()
			job := p.start(append(append(mpirunCommand(4), "sh", "-c", script, *rdzvBin),
				worker("record", dir)...)...)
			job.checkCode(0)
			t.Logf("%.1f s", time.Since(began).Seconds())
			checkEnvironments(t, records(t, dir, 4))
			if n := len(job.linesWith("rdzv: started by ")); n != c.agents {
				t.Errorf("%d agents, want %d", n, c.agents)
			}
		})
	}
}

// A task that is no agent has few threads, however many processors the node has.
func TestTaskHasFewThreads(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	dir := p.dir("job")
	job := p.startWith([]string{"GOMAXPROCS=64"}, openMPI(p, 4, nil, worker("wait", dir))...)
	for _, r := range records(t, dir, 4) {
		task := agentAbove(r.PID)
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", task))
		if err != nil || !isAgent(task) && len(threads) > 16 {
			t.Errorf("a task has %d threads (%v)", len(threads), err)
		}
	}
	job.signal(syscall.SIGTERM)
	job.code()
}

// A launcher's number of tasks per node may be wrong, because a wrapper has changed it: also if it
// says that all tasks are on one node, the agents of two nodes meet.
func TestWrongNumberOfLocalTasks(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	for _, test := range []struct{ launcher, variable string }{
		{"openmpi", "OMPI_COMM_WORLD_LOCAL_SIZE=3"},
		{"openmpi", "OMPI_COMM_WORLD_LOCAL_SIZE=4"},
		{"hydra", "MPI_LOCALNRANKS=4"},
	} {
		t.Run(test.variable, func(t *testing.T) {
			via := []string{"env", test.variable}
			j := c.startJob(t, test.launcher, 2, []string{"-v"}, worker("record", jobDir), via...)
			j.checkCommands(0)
			for rank, r := range records(t, j.records(), 4) {
				want := map[string]int{"RANK": rank, "LOCAL_RANK": rank % 2, "LOCAL_WORLD_SIZE": 2,
					"GROUP_RANK": rank / 2, "GROUP_WORLD_SIZE": 2}
				for name, n := range want {
					if r.Env[name] != strconv.Itoa(n) {
						t.Errorf("rank %d: %s is %q, want %d", rank, name, r.Env[name], n)
					}
				}
			}
			if n := len(j.linesWith("rdzv: started by ")); n != 2 {
				t.Errorf("%d agents, want 2", n)
			}
		})
	}
}

func orTrue(command string) string {
	if command == "" {
		return "true"
	}
	return command
}

// A task that is killed is a lost rank, and no process of any task is left.
func TestNodeAgentLosesATask(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	dir := p.dir("job")
	job := p.start(openMPI(p, 4, nil, worker("wait", dir))...)
	all := records(t, dir, 4)
	rank := slices.IndexFunc(all, func(r record) bool { return !isAgent(agentAbove(r.PID)) })
	kill(agentAbove(all[rank].PID))
	job.code() // mpirun's
	if len(job.linesWith(fmt.Sprintf("rdzv: lost the task of rank %d on ", rank))) != 1 {
		t.Errorf("the loss of rank %d's task is not reported once", rank)
	}
}
