// Scale measures how a store scales: N agents, each with a connection of its own,
// join one store process, fail and leave. It prints how long that took and what it used.
//
//	go run ./bench/scale -n 64,256,1024
//	go run ./bench/scale -n 1024 -tls -end loss -idle 10s
//
// All agents are goroutines of one process; the store is another process. Both share
// the cores of this machine, so that the times are upper bounds for a cluster. What the
// store's process used (CPU, memory, bytes) is valid for a cluster too.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// options select what to measure.
type options struct {
	tls     bool
	end     string        // fail, loss or done
	idle    time.Duration // between the world and the end
	profile string        // path
}

func main() {
	sizes := flag.String("n", "64,256,1024", "numbers of agents")
	reps := flag.Int("reps", 3, "runs of each number; the medians are printed")
	var o options
	flag.BoolVar(&o.tls, "tls", false, "use mutual TLS, as between hosts")
	flag.StringVar(&o.end, "end", "fail",
		"how the job ends: a worker fails (fail), an agent is lost (loss), all succeed (done)")
	flag.DurationVar(&o.idle, "idle", 0,
		"how long the job runs, to measure the CPU time of a store without requests")
	flag.StringVar(&o.profile, "profile", "", "write CPU profiles to PATH.store and PATH.agents")
	asStore := flag.Int("store", 0,
		"run as the store of this many agents (scale starts itself this way)")
	flag.Parse()
	role, do := ".agents", func() error {
		debug.SetGCPercent(400) // no real agent shares its heap with thousands of others
		return measure(*sizes, *reps, o)
	}
	if *asStore > 0 {
		role, do = ".store", func() error { return serve(*asStore, o) }
	}
	err := profiled(o.profile, role, do)
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func profiled(path, role string, do func() error) error {
	if path == "" {
		return do()
	}
	f, err := os.Create(path + role)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return do()
}

func measure(sizes string, reps int, o options) error {
	fmt.Print(heading())
	for text := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		runs := make([]result, reps)
		for i := range runs {
			if runs[i], err = run(n, o); err != nil {
				return fmt.Errorf("%d agents: %w", n, err)
			}
		}
		fmt.Println(row(n, o, runs))
	}
	return nil
}
