// Chaos is the fault campaign: jobs of PyTorch ranks that all_reduce over gloo under rdzv exec, one rank of which fails,
// whereupon the others crash within milliseconds because their connections break. It checks that the report names the rank
// that failed, how it ended and what it said, and that the job's exit code is that rank's.
//
//	make chaos                      500 faults, the table, and a line for each wrong reason
//	chaos -n 50 -seed 7             fewer, others
//	chaos -seed 7 -only 12          one of them again
//
// A campaign is made of its seed alone: which fault, when, in which rank, under which launcher. Importing torch takes a
// second of a processor for every rank, so ranks are forked by one process that has done so (zygote.py); the worker
// that rdzv supervises is this program, which stands in for such a rank and ends as it does (ferry.go). With -real every
// rank is a Python of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "ferry" {
		os.Exit(ferry(os.Getenv("CHAOS_ZYGOTE"), os.Environ()))
	}
	var c campaign
	flag.IntVar(&c.n, "n", 500, "how many faults")
	flag.Uint64Var(&c.seed, "seed", 1, "which campaign")
	flag.IntVar(&c.only, "only", -1, "only the fault of this number")
	flag.IntVar(&c.atOnce, "at-once", 2, "jobs at a time")
	flag.BoolVar(&c.real, "real", false, "a Python for every rank, which takes a second each")
	flag.StringVar(&c.rdzv, "rdzv", "bin/rdzv", "the rdzv to try")
	flag.StringVar(&c.python, "python", "", "a python3 that imports torch; looked for if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := c.run(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %v\n", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// campaign is a number of faults.
type campaign struct {
	n, only, atOnce int
	seed            uint64
	real            bool
	rdzv, python    string

	dir    string // of everything that it makes
	zygote string // its socket
	mpirun string
}

// run runs the campaign and prints its table; ok is whether at least 99 % of the reasons were right.
func (c *campaign) run(ctx context.Context) (ok bool, err error) {
	if err := c.prepare(); err != nil {
		return false, err
	}
	defer os.RemoveAll(c.dir)
	if !c.real {
		stop, err := c.startZygote(ctx)
		if err != nil {
			return false, err
		}
		defer stop()
	}
	faults := plan(c.seed, c.n)
	if c.only >= 0 && c.only < len(faults) {
		faults = faults[c.only : c.only+1]
	}
	var t table
	c.each(ctx, faults, &t)
	fmt.Print(&t)
	return t.right()*100 >= t.all()*99 && t.all() == len(faults), context.Cause(ctx)
}

// each tells t of every fault, a few at a time.
func (c *campaign) each(ctx context.Context, faults []fault, t *table) {
	free := make(chan struct{}, c.atOnce)
	var running sync.WaitGroup
	for _, f := range faults {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-free }()
			wrong := c.inject(ctx, f)
			if ctx.Err() == nil {
				t.add(f, wrong)
			}
		})
	}
	running.Wait()
}

// prepare finds what the campaign needs.
func (c *campaign) prepare() (err error) {
	if c.rdzv, err = filepath.Abs(c.rdzv); err != nil {
		return err
	}
	if _, err := os.Stat(c.rdzv); err != nil {
		return fmt.Errorf("cannot find rdzv (make bin/rdzv): %w", err)
	}
	if c.mpirun, err = ask("scripts/openmpi"); err != nil {
		return fmt.Errorf("cannot find Open MPI's mpirun (run this in the project's folder): %w", err)
	}
	if c.python == "" {
		if c.python, err = ask("scripts/python-with-torch"); err != nil {
			return fmt.Errorf("cannot find a python3 that imports torch: %w", err)
		}
	}
	c.dir, err = os.MkdirTemp("", "chaos")
	return err
}

func ask(program string) (string, error) {
	out, err := exec.Command(program).Output()
	return strings.TrimSpace(string(out)), err
}
