package agent

import (
	"fmt"
	"os"
	"strings"

	"rdzv/internal/nodelist"
	"rdzv/internal/plural"
	"rdzv/rdzv"
	"rdzv/rdzv/stacks"
)

// WorldAgreed says that all agents have joined, and this agent is about to start its workers. Every
// agent reports it, unless the job ends before.
type WorldAgreed struct {
	rdzv.World
	// Announce says that this agent tells the user who has taken over the ranks of lost agents.
	Announce bool `json:"-"`
}

func (WorldAgreed) Type() string { return "world_agreed" }

// String says which ranks this agent runs, or what it waits for without any; "" if that is no news.
func (e WorldAgreed) String() string {
	switch {
	case e.Seat.Spare && e.MaxTasks > 0:
		return "waiting for the next attempt: the job already runs on " + plural.Of(e.Nodes, "node")
	case e.Seat.Spare && e.Attempt > 0:
		return ""
	case e.Seat.Spare:
		return "waiting as a spare: this node takes over the ranks of one that is lost"
	}
	return fmt.Sprintf("all agents joined: this agent runs %s %s of %d on node %d of %d; "+
		"MASTER_ADDR=%s MASTER_PORT=%d", plural.Noun(e.Seat.Workers(), "rank"), e.Seat.Ranks(), e.Size,
		e.Seat.Node, e.Nodes, e.MasterAddr, e.MasterPort)
}

// Start tells which ranks run on which nodes: on all of them if they fit into the line, otherwise
// on the first ones and the last one. It is for one agent, that of rank 0, when the job begins, and
// when it goes on with other ranks than before; "" elsewhere.
func (e WorldAgreed) Start() string {
	again := ""
	switch {
	case !e.Seat.Has(0):
		return ""
	case e.Attempt > 0 && e.MaxTasks > 0:
		again = restartOf(e.Attempt, e.MaxRestarts)
	case e.Attempt > 0 || e.Nodes == 1 && len(e.Spares) == 0:
		return ""
	}
	line := ""
	for _, first := range []int{e.Nodes, 2, 1, 0} {
		if first > len(e.Layout) || first == e.Nodes-1 {
			continue // not all are known, or the list would leave out none
		}
		line = plural.Of(e.Size, "rank") + " on " + nodesOf(e.World, first) + sparesOf(e.World) +
			"; rank 0 at " + e.MasterAddr
		if len(line) <= lineWidth {
			break
		}
	}
	return line + again
}

// lineWidth is the maximum length of a line that can be shortened: with what is before it, it fits
// into 100 columns.
const lineWidth = 94

// maxNodes is how many nodes Where names.
const maxNodes = 4

// Where is "2 nodes: node1 0-3, node2 4-7", the nodes with their ranks.
func (e WorldAgreed) Where() string {
	shown := len(e.Layout)
	if shown > maxNodes {
		shown = maxNodes - 2
	}
	return nodesOf(e.World, shown)
}

// nodesOf is "9 nodes: node1 0-3, node2 4-7, ..., node9 32-35" with the first nodes and the last
// one, or "9 nodes" with none.
func nodesOf(w rdzv.World, first int) string {
	var texts []string
	for i, node := range w.Layout {
		switch last := i == len(w.Layout)-1; {
		case first == 0:
		case i < first:
			texts = append(texts, node.Host+" "+node.Ranks)
		case last:
			texts = append(texts, "...", node.Host+" "+node.Ranks)
		}
	}
	text := plural.Of(w.Nodes, "node")
	if len(texts) > 0 {
		text += ": " + strings.Join(texts, ", ")
	}
	return text
}

// sparesOf is " and 1 spare (node5)", or "" without spares.
func sparesOf(w rdzv.World) string {
	n := len(w.Spares) + w.MoreSpares
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %s (%s)", plural.Of(n, "spare"), nodelist.Short(w.Spares))
}

// TakenOver says which agents have taken over the ranks of lost ones, a line for each.
func (e WorldAgreed) TakenOver() (lines []string) {
	for _, r := range e.Replaced {
		line := fmt.Sprintf("%s takes over %s of %s", r.Host, rdzv.RanksText(r.Ranks), r.Lost)
		if r.Host == r.Lost {
			line = fmt.Sprintf("%s runs %s again", r.Host, rdzv.RanksText(r.Ranks))
		}
		lines = append(lines, line+restartOf(e.Attempt, e.MaxRestarts))
	}
	return lines
}

func restartOf(attempt, most int) string {
	return fmt.Sprintf(" (restart %d of %d)", attempt, most)
}

// WorkerStarted says that a worker of this agent runs. If the program of a worker cannot be
// executed, only [WorkerExited] is reported.
type WorkerStarted struct {
	Rank      int `json:"rank"`       // its rank
	LocalRank int `json:"local_rank"` // its local rank
	PID       int `json:"pid"`        // its process ID
}

func (WorkerStarted) Type() string { return "worker_started" }

// WorkerExited says how a worker of this agent ended. It comes before [JobEnded] if the job ended
// because of it, and after JobEnded if the worker was stopped because the job had ended.
type WorkerExited struct {
	rdzv.Worker
}

func (WorkerExited) Type() string { return "worker_exited" }

// InitProgress says which ranks have not reached torch's init_process_group although rank 0 has,
// after 10 s, 1 min and 5 min if ranks are missing then, and once more when all ranks have reached
// it. With `rank0_absent` it says, once, that rank 0 does not listen on MASTER_PORT 30 s after it
// was seen to load torch. Rank 0's agent reports it; without a launcher the agent that leads the
// job reports it too, if it is on another node.
type InitProgress struct {
	rdzv.InitProgress
}

func (InitProgress) Type() string { return "init_progress" }

// Stalled says that the workers of the attempt make no progress (`--stall-timeout`). The event
// has the stacks of the ranks. Rank 0's agent reports it, before [JobEnded] or [AttemptFailed] if
// the attempt ends because of it.
type Stalled struct {
	rdzv.Stall
	Attempt int `json:"attempt"` // number of the attempt; 0 is the first
	// number of the stall in the attempt; 1 is the first
	Number  int          `json:"number"`
	Timeout rdzv.Seconds `json:"timeout_seconds"` // `--stall-timeout`
	// whether the attempt ends because of it
	Ends bool `json:"ends"`
	// the file with the report, with `--log-dir`
	File   string        `json:"file,omitempty"`
	Stacks stacks.Report `json:"-"`
}

func (Stalled) Type() string { return "stalled" }

// DumpingStacks says that workers of this agent, which have not ended in time, print their stacks
// and are then killed. The agent reports it before they do.
type DumpingStacks struct {
	Workers     []WorkerStarted `json:"workers"`         // the workers
	IgnoresTerm bool            `json:"ignores_sigterm"` // whether all of them ignore SIGTERM
	Stderr      *os.File        `json:"-"`               // where; nil is stderr of this process
}

func (DumpingStacks) Type() string { return "dumping_stacks" }

func (e DumpingStacks) String() string {
	text := " has not exited; its stacks:"
	switch one := len(e.Workers) == 1; {
	case one && e.IgnoresTerm:
		text = " ignores SIGTERM; its stacks:"
	case e.IgnoresTerm:
		text = " ignore SIGTERM; their stacks:"
	case !one:
		text = " have not exited; their stacks:"
	}
	return ranksOf(e.Workers) + text
}

// maxNamed is how many workers or processes a line names.
const maxNamed = 8

// ranksOf is "ranks 0,1".
func ranksOf(workers []WorkerStarted) string {
	var ranks []int
	for _, w := range workers[:min(len(workers), maxNamed)] {
		ranks = append(ranks, w.Rank)
	}
	return rdzv.RankList(ranks, len(workers)-len(ranks))
}

// LogLost says that a log of this agent could not be written, and is not written any more. The
// agent reports it when it happens, and again, with the number of bytes, when the worker and its
// descendants have ended.
type LogLost struct {
	Rank int    `json:"rank"` // of the worker
	File string `json:"file"` // its log
	Err  error  `json:"-"`
	Text string `json:"text"` // the reason
	// the second time: how many bytes of the worker's output are not in the file
	Bytes int64 `json:"bytes,omitempty"`
}

func (LogLost) Type() string { return "log_lost" }

func (e LogLost) String() string {
	if e.Bytes == 0 {
		return fmt.Sprintf("cannot write %q: %s: the output of rank %d is no longer kept",
			e.File, e.Text, e.Rank)
	}
	return fmt.Sprintf("%d bytes of the output of rank %d were dropped from %q",
		e.Bytes, e.Rank, e.File)
}

// OutputLost says that some of the output of a worker could not be shown, for example because
// stdout of the agent is a file on a full disk. The agent reports it once for each stream of a
// worker, at its end. Without a log, the worker's writes to stdout have failed since then.
type OutputLost struct {
	Rank   int    `json:"rank"`          // of the worker
	Stream string `json:"stream"`        // `stdout`, or `stderr`
	Err    error  `json:"-"`             // the first reason
	Text   string `json:"text"`          // the first reason
	Bytes  int64  `json:"bytes"`         // how many bytes of the worker's output were not shown
	Log    string `json:"log,omitempty"` // the log that has them (`--log-dir`)
}

func (OutputLost) Type() string { return "output_lost" }

func (e OutputLost) String() string {
	line := fmt.Sprintf("%s of the output of rank %d could not be written to %s: %s",
		plural.Of(int(e.Bytes), "byte"), e.Rank, e.Stream, e.Text)
	if e.Log != "" {
		line += "; they are in " + e.Log
	}
	return line
}
