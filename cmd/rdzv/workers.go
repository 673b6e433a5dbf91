package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/masterport"
	"rdzv/wrap"
)

// member is what this agent says of itself.
func (g *agent) member() rdzv.Member {
	m := rdzv.Member{
		ID: newID(), Host: host(), PID: os.Getpid(),
		Rank: g.place.Rank, LocalRank: g.place.LocalRank, LocalSize: g.place.LocalSize,
		NodeRank: g.place.NodeRank, Slots: g.slots,
		Hosting: g.conn.hosting(), Addr: g.conn.local(), Via: g.conn.remote(), Ways: g.conn.ways, Problems: g.allProblems(),
	}
	if g.place.Launcher != envmap.None {
		m.Node = nodeID() // by hand each agent is a node: so many were asked for
	}
	if g.port != nil {
		m.MasterPort = g.port.Port()
	}
	return m
}

// holdPort takes a port for torch's store if rank 0 may be one of this agent's
// workers, and keeps it until the agent ends.
func (g *agent) holdPort() (err error) {
	mayBeRank0 := g.place.Rank == 0 || g.place.Rank == envmap.Unknown && g.conn.hosting()
	if !mayBeRank0 || g.port != nil {
		return nil
	}
	g.port, err = masterport.Hold(g.masterPort)
	if errors.Is(err, syscall.EADDRINUSE) {
		return advice{err, "without --master-port each job gets a port that is free"}
	}
	return err
}

// runWorkers runs the workers until the job has ended and nothing of them lives.
func (g *agent) runWorkers() error {
	g.ends = make([]end, g.slots)
	defer g.removeErrorFiles()
	tree, err := g.tree()
	if err != nil {
		return err
	}
	g.oomBefore = oomKills(os.DirFS("/"))
	g.outside.runs.Store(true)
	_, err = wrap.Run(g.stopping(), tree)
	g.outside.runs.Store(false)
	g.tally.close()
	if g.port != nil {
		g.port.Close()
	}
	return err
}

// tree is all workers of this agent.
func (g *agent) tree() (wrap.Tree, error) {
	t := wrap.Tree{
		Grace: g.grace, Linger: true, JobControl: true,
		Source: g.outside.source, Signals: g.outside.pass, Deaf: g.outside.deaf, Kill: g.outside.kill,
	}
	t.Ended = g.ended
	t.Gone = func() { _, _ = g.session.Leave(context.Background()) } // agent.leave hears the same
	for i := range g.slots {
		environ, err := g.workerEnviron(i)
		if err != nil {
			return t, err
		}
		w := wrap.Worker{Path: g.path, Args: g.program, Env: environ, Stdout: g.stdout, Stderr: g.stderr, Capture: !g.noCapture}
		if i == 0 {
			w.Stdin = g.stdin
		}
		t.Workers = append(t.Workers, w)
	}
	return t, nil
}

// workerEnviron is the environment of the agent's i-th worker.
func (g *agent) workerEnviron(i int) ([]string, error) {
	w, seat := g.world, g.world.Seat
	id := envmap.Identity{
		Rank: seat.Rank + i, WorldSize: w.Size, LocalRank: seat.LocalRank + i, LocalWorldSize: seat.LocalSize,
		NodeRank: seat.Node, Nodes: w.Nodes, MasterAddr: w.MasterAddr, MasterPort: w.MasterPort,
		RunID: w.Job, Attempt: w.Attempt, Launcher: g.place.Launcher,
		Interface: g.networkInterface(), NCCLConfigured: ncclConfigured(g.env),
		Threads: g.cpus.Threads(g.slots, seat.LocalSize), Visible: g.devices, GPUs: g.devices.Count(),
	}
	var err error
	if g.ends[i].file, err = newErrorFile(g.conn.dir); err != nil {
		g.say.detail("%v", err) // the worker then has none
	} else {
		id.ErrorFile = g.ends[i].file.path
	}
	environ, notes, err := envmap.Torch(g.app.environ, id, envmap.TorchOptions{
		Device: envmap.DeviceMode(g.device), Set: g.set, AsOpenMPI: g.as == "openmpi", StripLauncher: g.ownTasks(),
	})
	if i == 0 { // the other workers' notes are the same
		for _, note := range notes {
			g.say.news("%s", note)
		}
	}
	return environ, err
}

// networkInterface is the interface that leads from this node to MASTER_ADDR, the
// same for all agents of a node whichever way each came to the store; none where
// all are on one node.
func (g *agent) networkInterface() string {
	if g.world.Nodes == 1 {
		return ""
	}
	own := routeTo(g.world.MasterAddr)
	if own == "" {
		own = g.conn.local()
	}
	if name := interfaceOf(own); name != "lo" {
		return name
	}
	return ""
}

// tellTimeout bounds each word to the store, which answers in milliseconds.
const tellTimeout = 5 * time.Second

// end is what the report needs to know of a worker's end.
type end struct {
	file  *errorFile // nil if there is no path for it
	words []string   // its last words on standard error, or its traceback
	oom   bool       // the kernel ran out of memory while it ran
	err   error      // why it could not be started
}

// ended takes in the end of a worker; a failure is told to the job.
func (g *agent) ended(i int, r wrap.Result) {
	w := rdzv.Worker{
		Rank: g.world.Seat.Rank + i, LocalRank: g.world.Seat.LocalRank + i,
		PID: r.PID, Code: r.Code, Signal: int(r.Signal), Stopped: r.Stopped, Took: r.Took,
	}
	switch {
	case errors.Is(r.Err, wrap.ErrWatchdog): // its death is not the worker's own failure
		w.Stopped = true
		g.tell(func(ctx context.Context) error { return g.session.Lose(ctx, g.watchdogLost(w.Rank)) })
	case r.ExitCode() == 0, r.Stopped:
	case r.Outside != 0: // a launcher or the terminal has ended it, and with it the job
		w.Stopped = true
		g.tell(func(ctx context.Context) error { return g.session.End(ctx, int(r.Outside)) })
	default:
		w.Text = g.lastWords(i, r)
		g.failed(w, append(g.ends[i].words, w.Text))
		return
	}
	g.count(w)
}

// watchdogLost says what has ended a worker whose watchdog died. Somebody has killed
// it, or the kernel for want of memory.
func (g *agent) watchdogLost(rank int) string {
	return fmt.Sprintf("lost the watchdog of rank %d on %s, whose workers were killed with it", rank, host())
}

// lastWords keeps what the worker said of its failure, and returns its one line:
// what it wrote for torch's errors module, else what its standard error ends with.
func (g *agent) lastWords(i int, r wrap.Result) string {
	e := &g.ends[i]
	var line string
	e.words, line = lastLines(r.Stderr)
	e.oom = r.Signal == syscall.SIGKILL && oomKills(os.DirFS("/")) > g.oomBefore
	if e.err = r.Err; r.Err != nil {
		line = r.Err.Error()
	}
	if e.file == nil {
		return line
	}
	message, traceback := e.file.message()
	if traceback != "" {
		e.words = strings.Split(traceback, "\n")
	}
	if message != "" {
		return message
	}
	return line
}

func (g *agent) removeErrorFiles() {
	for _, e := range g.ends {
		if e.file != nil {
			e.file.remove()
		}
	}
}

// settle says to the job that all workers of this agent have ended. When all
// agents have, one of them reports: what this one has to say of the end comes before.
func (g *agent) settle(workers []rdzv.Worker) {
	if g.told != nil && g.session.Context().Err() != nil {
		<-g.told
		if !g.conn.hosting() { // for whose word all wait
			time.Sleep(afterOthers(g.world.Seat.LocalSize/g.slots, g.cpus.Node))
		}
	}
	g.tell(func(ctx context.Context) error { return g.session.Settle(ctx, workers) })
}

// tell says something to the job. That it cannot is no news for the user: the
// store is lost then, and that is told already.
func (g *agent) tell(word func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
	defer cancel()
	if err := word(ctx); err != nil {
		g.say.detail("%v", err)
	}
}

// cannotRun ends the job because this agent could not run its workers, or could
// not end them.
func (g *agent) cannotRun(err error) {
	if err != wrap.ErrWatchdog { // that alone is told already
		g.say.line("%v", err)
	}
	seat := g.world.Seat
	w := rdzv.Worker{Rank: seat.Rank, LocalRank: seat.LocalRank, Code: codeExec, Text: err.Error()}
	g.tell(func(ctx context.Context) error { return g.session.Fail(ctx, w) })
	g.settle([]rdzv.Worker{w})
}
