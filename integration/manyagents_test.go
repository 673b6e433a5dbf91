package integration

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

var many = flag.Int("many", 32, "number of agents of TestManyAgents")

// A manyJob is a job of many small workers under one mpirun.
type manyJob struct {
	*process
	place *place
	dir   string
	n     int
	end   *os.File // end of a named pipe; the workers end when it is closed
}

// pipeWorker opens the pipe before it notes its pid in a file with its rank as the name.
const pipeWorker = `exec 3<"$0/pipe"; echo $$ > "$0/.$RANK"; mv "$0/.$RANK" "$0/$RANK"
	read end <&3; exit 0`

// startManyJob starts a job and waits until all its workers have started.
func startManyJob(t *testing.T, n int) *manyJob {
	t.Helper()
	p := newPlace(t)
	j := &manyJob{place: p, dir: p.dir("workers"), n: n}
	pipe := filepath.Join(j.dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if j.end, err = os.OpenFile(pipe, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.end.Close() })
	j.process = p.start(openMPI(p, n, nil, []string{"/bin/sh", "-c", pipeWorker, j.dir})...)
	if !eventually(2*waitLimit, func() bool { return j.started() == n }) {
		t.Fatalf("%d of %d workers have started", j.started(), n)
	}
	t.Logf("%d workers run after %v", n, time.Since(j.process.started).Round(time.Millisecond))
	return j
}

// started counts the workers that have started.
func (j *manyJob) started() (n int) {
	files, _ := os.ReadDir(j.dir)
	for _, file := range files {
		if _, err := strconv.Atoi(file.Name()); err == nil {
			n++
		}
	}
	return n
}

// checkEnd waits for the end, and checks the exit code and that no process is left.
func (j *manyJob) checkEnd(want int) {
	j.t.Helper()
	start := time.Now()
	j.checkCode(want)
	j.t.Logf("mpirun has returned after %v", time.Since(start).Round(time.Millisecond))
	if !eventually(5*time.Second, func() bool { return len(j.place.tree()) == 0 }) {
		j.t.Errorf("%d processes are still alive, want none", len(j.place.tree()))
	}
}

// Many agents with real workers on one machine start, and they end if all succeed and if one fails.
// They end after all have started, because Open MPI hangs if many tasks end while it starts others.
func TestManyAgents(t *testing.T) {
	t.Run("all succeed", func(t *testing.T) {
		j := startManyJob(t, *many)
		j.end.Close()
		j.checkEnd(0)
		lines := j.linesWith("rdzv:")
		progress := j.linesWith("rdzv:", "tasks joined") // printed after 5 s, on a slow machine
		if len(lines) > len(progress) {
			t.Errorf("rdzv printed %q, want nothing, because the job succeeded", lines)
		}
	})
	t.Run("one is killed", func(t *testing.T) {
		j := startManyJob(t, *many)
		kill(numberIn(filepath.Join(j.dir, "1"), ""))
		j.checkEnd(137)
	})
}
