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

var many = flag.Int("many", 32, "agents of TestManyAgents")

// A throng is a job of many small workers under one mpirun, which end when they are told.
type manyJob struct {
	*process
	place *place
	dir   string
	n     int
	end   *os.File // of the pipe on which all workers wait
}

// pipeWorker opens the pipe before it notes itself: whoever is noted is told.
const pipeWorker = `exec 3<"$0/pipe"; echo $$ > "$0/.$RANK"; mv "$0/.$RANK" "$0/$RANK"; read end <&3; exit 0`

// startManyJob starts n of them, and waits until all are there.
func startManyJob(t *testing.T, n int) *manyJob {
	t.Helper()
	p := newPlace(t)
	c := &manyJob{place: p, dir: p.dir("throng"), n: n}
	pipe := filepath.Join(c.dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.end, err = os.OpenFile(pipe, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.end.Close() })
	c.process = p.start(openMPI(p, n, nil, []string{"/bin/sh", "-c", pipeWorker, c.dir})...)
	if !eventually(2*waitLimit, func() bool { return len(c.ranks()) == n }) {
		t.Fatalf("%d of %d workers have begun", len(c.ranks()), n)
	}
	t.Logf("%d workers run after %v", n, time.Since(c.started).Round(time.Millisecond))
	return c
}

// ranks lists those that have noted themselves.
func (c *manyJob) ranks() (ranks []int) {
	files, _ := os.ReadDir(c.dir)
	for _, file := range files {
		if rank, err := strconv.Atoi(file.Name()); err == nil {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// rdzv returns the agents, watchdogs and sentinels.
func (c *manyJob) rdzv() (pids []int) {
	for _, pid := range c.place.tree() {
		if isRdzv(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// over waits for the end, and checks the code and that nobody is left.
func (c *manyJob) over(want int) {
	c.t.Helper()
	told := time.Now()
	if code := c.code(); code != want {
		c.t.Errorf("%d agents ended with %d, want %d", c.n, code, want)
	}
	c.t.Logf("mpirun has returned after %v", time.Since(told).Round(time.Millisecond))
	if !eventually(5*time.Second, func() bool { return len(c.place.tree()) == 0 }) {
		c.t.Errorf("%d processes live on", len(c.place.tree()))
	}
}

// Many agents with real workers on one machine start, and end together when all is well and when one fails. They end when
// all have started: Open MPI itself hangs where many tasks end while it starts others.
func TestManyAgents(t *testing.T) {
	t.Run("all succeed", func(t *testing.T) {
		c := startManyJob(t, *many)
		c.end.Close()
		c.over(0)
		said, waiting := len(c.linesWith("rdzv:")), len(c.linesWith("rdzv:", "agents joined")) // which a slow machine may take 5 s for
		if said > waiting {
			t.Errorf("a job that goes well is silent, and said %q", c.linesWith("rdzv:"))
		}
	})
	t.Run("one is killed", func(t *testing.T) {
		c := startManyJob(t, *many)
		kill(numberIn(filepath.Join(c.dir, "1"), ""))
		c.over(137)
	})
}
