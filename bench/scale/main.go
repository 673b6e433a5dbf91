// Scale measures what a store bears: it lets N agents, each on a connection of its
// own, meet in one store process, fail and leave, and prints what that took.
//
//	go run ./bench/scale -n 64,256,1024
//	go run ./bench/scale -n 1024 -tls -end loss -idle 10s
//
// All agents are goroutines of one process, the store is another one. Both run on
// this machine and share its cores, so that the times are upper bounds for a
// cluster; what the store's process used (cpu, memory, bytes) carries over.
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

// options is what to measure.
type options struct {
	tls  bool
	end  string        // fail, loss or done
	idle time.Duration // between the world and the end

	profile string // path
}

func main() {
	sizes := flag.String("n", "64,256,1024", "numbers of agents")
	reps := flag.Int("reps", 3, "runs of each, of whose figures the medians are printed")
	var o options
	flag.BoolVar(&o.tls, "tls", false, "with mutual TLS, as between hosts")
	flag.StringVar(&o.end, "end", "fail", "how the job ends: a worker fails (fail), an agent is lost (loss), or well (done)")
	flag.DurationVar(&o.idle, "idle", 0, "how long the job runs, to see what it costs meanwhile")
	flag.StringVar(&o.profile, "profile", "", "write CPU profiles to this path with .store and .agents added")
	asStore := flag.Int("store", 0, "be the store of so many agents; for itself")
	flag.Parse()
	role, do := ".agents", func() error {
		debug.SetGCPercent(400) // thousands of agents in one heap are the simulator's own burden
		return measure(*sizes, *reps, o)
	}
	if *asStore > 0 {
		role, do = ".store", func() error {
			if *asStore >= 512 {
				debug.SetGCPercent(200) // as rdzv's own host does while many agents come
			}
			return serve(*asStore, o)
		}
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
