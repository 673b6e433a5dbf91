package integration

import (
	"strconv"
	"strings"
	"testing"
)

// Every worker has its ranks in its environment, in jobs of different sizes.
func TestWorkerEnvironment(t *testing.T) {
	var all []variant
	for _, n := range []int{1, 4, 16} {
		all = append(all, underLaunchers(strconv.Itoa(n), func(t *testing.T, l launcher) {
			p := l.place(t)
			dir := p.dir("job")
			job := p.start(l.command(p, n, nil, worker("record", dir))...)
			job.checkCode(0)
			checkEnvironments(t, records(t, dir, n))
			if lines := job.linesWith("rdzv:"); len(lines) != 0 {
				t.Errorf("rdzv printed %q, want nothing, because the job succeeded", lines)
			}
		})...)
	}
	runInOrder(t, selected(all))
}

// checkEnvironments checks the environments of all workers of a job on one host.
func checkEnvironments(t *testing.T, all []record) {
	t.Helper()
	n, first := strconv.Itoa(len(all)), all[0].Env
	for rank, r := range all {
		own := strconv.Itoa(rank)
		r.checkEnv(t, map[string]string{
			"RANK": own, "WORLD_SIZE": n, "LOCAL_RANK": own, "LOCAL_WORLD_SIZE": n,
			"GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "NODE_RANK": "0",
			"ROLE_NAME": "default", "ROLE_RANK": own, "ROLE_WORLD_SIZE": n,
			"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": first["MASTER_PORT"],
			"TORCHELASTIC_RUN_ID":        first["RDZV_RUN_ID"],
			"TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
			"TORCHELASTIC_USE_AGENT_STORE": "False",
			"RDZV_RUN_ID":                  first["RDZV_RUN_ID"], "RDZV_ATTEMPT": "0",
			"RDZV_DETECTED":                   first["RDZV_DETECTED"],
			"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "PYTHONFAULTHANDLER": "1",
		})
		if threads := r.number(t, "OMP_NUM_THREADS"); threads < 1 {
			t.Errorf("rank %d has OMP_NUM_THREADS=%d, want at least 1", rank, threads)
		}
	}
	if port := all[0].number(t, "MASTER_PORT"); port < 1024 || port > 65535 {
		t.Errorf("MASTER_PORT is %d, want 1024 to 65535", port)
	}
	for _, name := range []string{"RDZV_RUN_ID", "RDZV_DETECTED"} {
		if first[name] == "" {
			t.Errorf("%s is empty", name)
		}
	}
	checkErrorFiles(t, all)
}

// checkErrorFiles checks that each rank has its own file, in which torch writes an exception.
func checkErrorFiles(t *testing.T, all []record) {
	t.Helper()
	owner := map[string]int{}
	for rank, r := range all {
		file := r.Env["TORCHELASTIC_ERROR_FILE"]
		if file == "" {
			t.Errorf("rank %d does not have TORCHELASTIC_ERROR_FILE", rank)
		}
		if other, taken := owner[file]; taken {
			t.Errorf("the ranks %d and %d have the same TORCHELASTIC_ERROR_FILE=%q", other, rank,
				file)
		}
		owner[file] = rank
	}
}

// A worker has the variables of mpirun, because it may be an MPI program, and of the user. It does
// not have those that only rdzv reads.
func TestOtherVariables(t *testing.T) {
	p := newPlace(t)
	dir := p.dir("job")
	token := oneToken
	env := []string{"RDZV_TOKEN=" + token, "RDZV_GRACE=3s", "MINE=kept", "OMP_NUM_THREADS=7",
		"RANK=9"}
	job := p.startWith(env, openMPI(p, 2, nil, worker("record", dir))...)
	job.checkCode(0)
	for rank, r := range records(t, dir, 2) {
		r.checkEnv(t, map[string]string{
			"OMPI_COMM_WORLD_RANK": strconv.Itoa(rank), "OMPI_COMM_WORLD_SIZE": "2",
			"MINE": "kept", "OMP_NUM_THREADS": "7",
		})
		for name, value := range r.Env {
			if name == "RDZV_TOKEN" || name == "RDZV_GRACE" || strings.Contains(value, token) {
				t.Errorf("rank %d has %s=%q, which only rdzv may have", rank, name, value)
			}
		}
	}
	if len(job.linesWith("rdzv:", "RANK=9")) == 0 {
		t.Error("rdzv printed no warning that it replaces RANK=9")
	}
}

// The worker's standard streams are rdzv's, and it gets its arguments unchanged.
func TestStandardStreams(t *testing.T) {
	p := newPlace(t)
	job := p.start("sh", "-c", `echo from stdin | "$@"`, "sh", *rdzvBin, "exec", "--",
		"sh", "-c", `read -r line; echo "got $line"; echo "and $1" >&2`, "sh", "a 'b' $c --d")
	job.waitFor("got from stdin")
	job.waitFor("and a 'b' $c --d")
	job.checkCode(0)
}
