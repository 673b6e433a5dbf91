package announce

import (
	"fmt"
	"strings"

	"rdzv/cmd/rdzv/internal/visible"
	"rdzv/rdzv/agent"
	"rdzv/wrap"
)

// settling writes what this agent waits for after the job's end, if that takes some time.
func (n *ending) settling(e agent.Settling) {
	n.writeHeld()
	what := ""
	switch {
	case e.Wait <= 0:
		return
	case len(e.Running) > 0:
		what = workersText(e.Running)
	case len(e.Left) > 0:
		what = "processes that the workers have left, " + processesText(e.Left) + ","
	default:
		return // other agents need the time
	}
	line := fmt.Sprintf("waiting up to %v for %s to exit", e.Wait, what)
	switch {
	case n.console.Terminal() && n.interrupted:
		line += "; press Ctrl-C again to kill them"
	case n.console.Terminal():
		line += "; press Ctrl-C to kill them"
	}
	n.console.Info("%s", line)
}

// dumpingStacks writes whose stacks follow, where they do: a launcher may read the streams of its
// tasks in any order.
func (n *ending) dumpingStacks(e agent.DumpingStacks) {
	n.writeHeld()
	n.dumped = true
	text := " has not exited; its stacks:"
	switch one := len(e.Workers) == 1; {
	case one && e.IgnoresTerm:
		text = " ignores SIGTERM; its stacks:"
	case e.IgnoresTerm:
		text = " ignore SIGTERM; their stacks:"
	case !one:
		text = " have not exited; their stacks:"
	}
	n.console.At(e.Stderr).Warn("%s%s", ranksText(e.Workers), text)
}

// maxNamed is how many workers or processes a line names.
const maxNamed = 8

// workersText is "ranks 0,1 (pid 71, 72)".
func workersText(workers []agent.WorkerStarted) string {
	var pids []string
	for _, w := range workers[:min(len(workers), maxNamed)] {
		pids = append(pids, fmt.Sprint(w.PID))
	}
	return fmt.Sprintf("%s (pid %s)", ranksText(workers), strings.Join(pids, ", "))
}

// ranksText is "ranks 0,1".
func ranksText(workers []agent.WorkerStarted) string {
	var ranks []string
	for _, w := range workers[:min(len(workers), maxNamed)] {
		ranks = append(ranks, fmt.Sprint(w.Rank))
	}
	noun, more := "ranks", ""
	if len(workers) == 1 {
		noun = "rank"
	}
	if n := len(workers) - len(ranks); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s %s%s", noun, strings.Join(ranks, ","), more)
}

// processesText is "71 (python3), 72 (sleep)".
func processesText(processes []wrap.Process) string {
	var names []string
	for _, p := range processes[:min(len(processes), maxNamed)] {
		names = append(names, fmt.Sprintf("%d (%s)", p.PID, visible.Line(p.Name)))
	}
	if n := len(processes) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}
