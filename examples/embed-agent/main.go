// Command embed-agent runs an agent of rdzv in its own process, as "rdzv exec" does: 4 workers on
// each node, under mpirun, srun or without a launcher. Events go to standard output as lines of
// JSON, and the exit code is the job's.
//
//	embed-agent             all workers succeed
//	embed-agent -fail 2     rank 2 fails, and the others are stopped
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent"
)

func main() {
	fail := flag.Int("fail", -1, "rank of the worker that fails")
	worker := flag.Bool("worker", false, "be a worker")
	flag.Parse()
	if *worker {
		os.Exit(work(*fail))
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "embed-agent:", err)
		os.Exit(agent.CodeAgent)
	}
	result, err := agent.Run(context.Background(), agent.Config{
		// A worker is this program again; a real one would be {"python3", "main.py"}.
		Program:      []string{self, "-worker", "-fail", fmt.Sprint(*fail)},
		Environ:      os.Environ(), // the agent reads no environment but this one
		ProcsPerNode: "4",
		Stderr:       os.Stderr, // on its way there, the last lines are kept for the report
		// What is not set is as in "rdzv exec", see agent.Defaults: 10 s from SIGTERM to SIGKILL, and
		// 10 min for all agents to join.
		Events: printEvent,
	})
	if err != nil { // this agent never joined a job; a failure of the job is no error
		fmt.Fprintln(os.Stderr, "embed-agent:", err, agent.Hint(err))
	}
	if v := result.Verdict; v != nil && v.Kind != rdzv.Done { // the same on all agents
		fmt.Fprintln(os.Stderr, "embed-agent:", v)
	}
	os.Exit(agent.ExitCode(result, err))
}

// printEvent is called with one event at a time. A program that acts on events uses a type switch:
//
//	switch e := e.(type) {
//	case agent.WorkerExited:
//		log.Print(e.Rank, e.Code)
//	}
func printEvent(e agent.Event) {
	line, err := agent.MarshalEvent(time.Now(), e)
	if err != nil {
		fmt.Fprintln(os.Stderr, "embed-agent:", err)
		return
	}
	fmt.Println(string(line))
}

// work is the main function of a worker, and returns its exit code. It knows its place by RANK,
// WORLD_SIZE, MASTER_ADDR and so on.
func work(fail int) int {
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGTERM)
	switch {
	case os.Getenv("RANK") == fmt.Sprint(fail):
		fmt.Fprintln(os.Stderr, "no such data set")
		return 3
	case fail >= 0: // it would work on, and is told to stop because another one has failed
		<-stopped
		return 1
	}
	return 0
}
