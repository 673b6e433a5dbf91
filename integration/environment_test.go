package integration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// Every rank is told who it is, for jobs of one, of as many as a small machine has, and of many.
func TestWorkerEnvironment(t *testing.T) {
	forEachLauncher(t, func(t *testing.T, l launcher) {
		for _, n := range []int{1, 4, 16} {
			t.Run(strconv.Itoa(n), func(t *testing.T) {
				p := l.place(t)
				dir := p.dir("job")
				job := p.start(l.line(p, n, nil, worker("record", dir))...)
				if code := job.code(); code != 0 {
					t.Errorf("the job ended with %d", code)
				}
				checkIdentity(t, records(t, dir, n))
				if said := job.linesWith("rdzv:"); len(said) != 0 {
					t.Errorf("a job that goes well is silent, and said %q", said)
				}
			})
		}
	})
}

// checkIdentity checks the environments of all workers of a job on this machine, in the order of their ranks.
func checkIdentity(t *testing.T, all []record) {
	t.Helper()
	n := strconv.Itoa(len(all))
	for rank, r := range all {
		own := strconv.Itoa(rank)
		for name, want := range map[string]string{
			"RANK": own, "WORLD_SIZE": n, "LOCAL_RANK": own, "LOCAL_WORLD_SIZE": n,
			"GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "NODE_RANK": "0",
			"ROLE_NAME": "default", "ROLE_RANK": own, "ROLE_WORLD_SIZE": n,
			"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": all[0].Env["MASTER_PORT"],
			"TORCHELASTIC_RUN_ID": all[0].Env["RDZV_RUN_ID"], "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
			"TORCHELASTIC_USE_AGENT_STORE": "False", "RDZV_RUN_ID": all[0].Env["RDZV_RUN_ID"], "RDZV_ATTEMPT": "0",
			"RDZV_DETECTED": all[0].Env["RDZV_DETECTED"], "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "PYTHONFAULTHANDLER": "1",
		} {
			if got, there := r.Env[name]; got != want || !there {
				t.Errorf("rank %d has %s=%q (set: %v), want %q", rank, name, got, there, want)
			}
		}
		if threads := r.number(t, "OMP_NUM_THREADS"); threads < 1 {
			t.Errorf("rank %d has OMP_NUM_THREADS=%d", rank, threads)
		}
	}
	if port := all[0].number(t, "MASTER_PORT"); port < 1024 || port > 65535 {
		t.Errorf("MASTER_PORT is %d", port)
	}
	if all[0].Env["RDZV_RUN_ID"] == "" || all[0].Env["RDZV_DETECTED"] == "" {
		t.Errorf("RDZV_RUN_ID=%q, RDZV_DETECTED=%q", all[0].Env["RDZV_RUN_ID"], all[0].Env["RDZV_DETECTED"])
	}
	checkErrorFiles(t, all)
}

// checkErrorFiles: each rank has a file of its own in which torch notes an exception.
func checkErrorFiles(t *testing.T, all []record) {
	t.Helper()
	owner := map[string]int{}
	for rank, r := range all {
		file := r.Env["TORCHELASTIC_ERROR_FILE"]
		if before, taken := owner[file]; taken || file == "" {
			t.Errorf("rank %d has TORCHELASTIC_ERROR_FILE=%q, as rank %d", rank, file, before)
		}
		owner[file] = rank
	}
}

// What mpirun has set stays, for a worker may be an MPI program; what is rdzv's own does not reach it.
func TestOtherVariables(t *testing.T) {
	p := newPlace(t)
	dir := p.dir("job")
	token := strings.Repeat("5ec7e7", 6)
	job := p.startWith([]string{"RDZV_TOKEN=" + token, "RDZV_GRACE=3s", "MINE=kept", "OMP_NUM_THREADS=7", "RANK=9"},
		openMPI(p, 2, nil, worker("record", dir))...)
	if code := job.code(); code != 0 {
		t.Errorf("the job ended with %d", code)
	}
	for rank, r := range records(t, dir, 2) {
		for name, want := range map[string]string{
			"OMPI_COMM_WORLD_RANK": strconv.Itoa(rank), "OMPI_COMM_WORLD_SIZE": "2", "MINE": "kept", "OMP_NUM_THREADS": "7",
		} {
			if r.Env[name] != want {
				t.Errorf("rank %d has %s=%q, want %q", rank, name, r.Env[name], want)
			}
		}
		for name, value := range r.Env {
			if name == "RDZV_TOKEN" || name == "RDZV_GRACE" || strings.Contains(value, token) {
				t.Errorf("rank %d has %s=%q", rank, name, value)
			}
		}
	}
	if len(job.linesWith("rdzv:", "RANK=9")) == 0 {
		t.Error("RANK=9 was replaced without a message")
	}
}

// The worker's streams are rdzv's own, and its arguments arrive as they were given.
func TestStandardStreams(t *testing.T) {
	p := newPlace(t)
	job := p.start("sh", "-c", `echo from stdin | "$@"`, "sh", *rdzvBin, "exec", "--",
		"sh", "-c", `read -r line; echo "got $line"; echo "and $1" >&2`, "sh", "a 'b' $c --d")
	job.waitFor("got from stdin")
	job.waitFor("and a 'b' $c --d")
	if code := job.code(); code != 0 {
		t.Error(fmt.Errorf("the job ended with %d", code))
	}
}
