package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/hashicorp/go-multierror"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/internal/procfs"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/collectives"
	"rdzv/rdzv/agent/internal/ending"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/identity"
	"rdzv/rdzv/agent/internal/ifname"
	"rdzv/rdzv/agent/internal/postmortem"
	"rdzv/rdzv/agent/internal/tally"
	"rdzv/rdzv/meet"
	"rdzv/wrap"
)

// run runs the workers until the job has ended and nothing of them is left.
func (w *workers) run() error {
	defer func() { ending.Remove(w.endings) }()
	w.output.checkShown()
	w.recorders = w.output.open()
	defer w.output.close()
	defer w.holdRAS()()
	defer w.recorders.RemoveFIFOs()
	defer w.tally.Close()
	if len(w.unready) > 0 {
		w.cannotStart()
		return nil
	}
	held, err := w.hold()
	if err != nil {
		w.cannotRun(0, w.tally.Number, err)
		return err
	}
	if held != nil {
		defer held.Close()
	}
	trees, err := w.trees()
	if err != nil {
		w.cannotRun(0, w.tally.Number, err)
		return err
	}
	for i := range trees {
		trees[i].Held = held
	}
	w.prepared.Store(true)
	for _, t := range w.local.all() {
		w.before = append(w.before, postmortem.OOMKills(t.Config.Root))
	}
	defer w.holdBack(trees)()
	defer w.watchInit()()
	defer w.watchStall()()
	defer w.watchTracebacks()()
	w.in.begin()
	err = runTrees(w.stopping(), w.in.stopFor, w.local, trees, w.cannotRun)
	w.in.runs.Store(false)
	return err
}

// hold holds the connection to the store open until nothing of the trees is left, if another
// attempt may follow: its end proves then that these have ended. It is nil if there is no such
// connection.
func (w *workers) hold() (*wrap.HeldSocket, error) {
	if !w.world.MayRestart() {
		return nil, nil
	}
	socket, err := w.session.Hold()
	if err != nil || socket == nil {
		return nil, err
	}
	return wrap.HoldSocket(socket)
}

// runTrees runs the workers of all tasks. failed is called as soon as it has failed for a task,
// with the index of the task's first worker, and how many have not been run: all or none. The
// others may go on, until the job ends: when ctx does, stopFor says how those of a task are
// stopped.
func runTrees(
	ctx context.Context, stopFor func(cause error, task int) *wrap.Stop, l *Local, trees []wrap.Tree,
	failed func(first, notRun int, err error),
) error {
	errs := make([]error, len(trees))
	run := func(i, first int, run func(context.Context, wrap.Tree) ([]wrap.Result, error)) {
		stopping, stop := context.WithCancelCause(context.WithoutCancel(ctx))
		defer context.AfterFunc(ctx, func() { stop(stopFor(context.Cause(ctx), i)) })()
		var results []wrap.Result
		if results, errs[i] = run(stopping, trees[i]); errs[i] != nil {
			failed(first, len(trees[i].Workers)-len(results), errs[i])
		}
	}
	var wg sync.WaitGroup
	first := l.Workers
	for i, t := range l.tasks {
		index := first // of its first worker
		wg.Go(func() { run(i+1, index, t.task.Run) })
		first += t.Workers
	}
	run(0, 0, l.runner.run)
	wg.Wait()
	isNil := func(err error) bool { return err == nil }
	switch errs = slices.DeleteFunc(errs, isNil); len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return multierror.Append(nil, errs...)
}

// trees are the workers of each task.
func (w *workers) trees() ([]wrap.Tree, error) {
	var trees []wrap.Tree
	addr, err := w.nodeAddr()
	if err != nil {
		return nil, err
	}
	first, face := 0, identity.Interface(addr)
	for i, t := range w.local.all() {
		tree, err := w.tree(t, first, addr, face)
		if err != nil {
			return nil, err
		}
		tree.Signals = w.in.tasks[i].Forward
		trees = append(trees, tree)
		first += t.Workers
	}
	if workers := trees[0].Workers; len(workers) > 0 {
		w.noteInterfaces(workers[0].Env)
	}
	return trees, nil
}

// nodeAddr is the address of this node on its way to MASTER_ADDR, the same for all agents of a node
// whichever way each came to the store.
func (w *workers) nodeAddr() (string, error) {
	if w.world.Nodes == 1 {
		return w.world.MasterAddr, nil
	}
	own, _ := netip.ParseAddr(host.RouteTo(w.world.MasterAddr))
	master, err := netip.ParseAddr(w.world.MasterAddr)
	if err != nil || !own.IsValid() {
		return w.addr, nil
	}
	c := meet.Config{Net: w.local.Config.Networks, Proc: procfs.System}
	allowed, err := c.OwnFor(own, master)
	switch {
	case err != nil:
		return "", err
	case !allowed.IsValid():
		return "", w.local.excludedError(own.String(), "rank 0 at "+master.String())
	}
	return allowed.WithZone("").String(), nil
}

// noteInterfaces reports variables of a worker that choose network interfaces which this node does
// not have, or which the user has excluded.
func (w *workers) noteInterfaces(environ []string) {
	if !w.local.FirstOfNode() {
		return
	}
	var restricted ifname.Networks
	if w.world.Nodes > 1 {
		restricted = w.local.networks()
	}
	for _, f := range ifname.Faults(environ, restricted) {
		w.events.diagnose(Warning, hint.With(errors.New(f.Text), f.Hint))
	}
}

// tree is the workers of a task; first is the index of its first one among those of the agent, addr
// the address of this node, face its network interface.
func (w *workers) tree(task *Local, first int, addr, face string) (wrap.Tree, error) {
	c, seat := task.Config, w.world.Seat
	frozen := c.lostAfter() // the other agents do not wait longer
	if w.local.Agents == 1 {
		frozen = 0
	}
	t := wrap.Tree{
		Grace: c.Grace, Linger: true, JobControl: true, FrozenLimit: frozen,
		Source: w.in.sourceOf(task), Signalled: w.in.signalled,
		DumpStacks: w.in.dump, Kill: w.in.kill,
		Started: func(i, pid int) {
			i += first
			started := tally.Process{Rank: seat.RankOf(i), LocalRank: seat.LocalRankOf(i), PID: pid}
			w.tally.Start(started)
			w.events.send(WorkerStarted(started))
		},
		Dumping: func(list []wrap.Dump) { w.dumping(task, first, list) },
		Ended:   func(i int, r wrap.Result) { w.workerEnded(first+i, r) },
		LogLost: func(i int, reason error, bytes int64) { w.output.logLost(first+i, reason, bytes) },
		OutputLost: func(i int, stream string, reason error, bytes int64) {
			w.output.lost(first+i, stream, reason, bytes)
		},
	}
	w.lease.Limit(&t)
	identities := task.identities()
	for i := range task.Workers {
		id := identities.Of(w.world, first+i, addr, face)
		id.RASAddr = w.ras.Addr()
		id.Recorder.Dump, id.Recorder.Pipe = w.recorders.Paths()
		bound := task.numa.Bind(&id, c.Device, i, task.Workers)
		environ, err := w.environ(task, first+i, id)
		if err != nil {
			return t, err
		}
		noteBinding(w.events, task, id, bound)
		worker := wrap.Worker{
			Path: task.Path, Dir: task.setup.WorkerDir(), Args: task.setup.Argv, Env: environ,
			Bind: binding(bound),
		}
		w.output.set(&worker, first+i)
		if i == 0 {
			worker.Stdin = c.Stdin
		}
		t.Workers = append(t.Workers, worker)
	}
	return t, nil
}

// holdRAS reserves an address for NCCL's RAS service. It ends with release.
func (w *workers) holdRAS() (release func()) {
	var err error
	if w.ras, err = collectives.Hold(w.local.env, w.world); err != nil {
		w.events.diagnose(Verbose, err) // they share NCCL's own with others
	}
	return w.ras.Release
}

// environ is the environment of the i-th worker.
func (w *workers) environ(task *Local, i int, id envmap.Identity) ([]string, error) {
	file, err := postmortem.NameErrorFile(w.dir)
	if err != nil {
		w.events.diagnose(Verbose, err) // the worker then has none
	} else {
		w.endings[i].File, id.ErrorFile = file, file
	}
	c := &task.Config
	environ := envmap.Changes{Set: task.setup.PathChange()}.Apply(c.Environ)
	if dir := task.setup.WorkerDir(); dir != "" {
		environ = envmap.Changes{Set: []envmap.KV{{Name: "PWD", Value: dir}}}.Apply(environ)
	}
	if _, set := task.env["PYTHONUNBUFFERED"]; !set && c.piped() {
		unbuffered := []envmap.KV{{Name: "PYTHONUNBUFFERED", Value: "1"}}
		environ = envmap.Changes{Set: unbuffered}.Apply(environ)
	}
	environ, notes, err := envmap.Torch(environ, id, c.torchOptions(task.OwnTasks))
	if i == 0 {
		w.ras.Note(environ)
	}
	w.recorders.Note(id.Rank)
	for _, note := range notes {
		w.events.send(EnvironmentNote{Text: note})
	}
	return environ, err
}

// stopping is a context for wrap.Run that ends with the job.
func (w *workers) stopping() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	job := w.session.Context()
	context.AfterFunc(w.session.Presence(), w.lease.Revoke) // others may have begun the next attempt
	context.AfterFunc(job, func() {
		w.mpi.Store(w.useMPI()) // before they are stopped
		cause := context.Cause(job)
		w.lease.End(cause)
		v, ok := errors.AsType[*rdzv.Verdict](cause)
		if ok && v.Kind == rdzv.Ended && w.in.signalled == wrap.Everyone {
			w.in.awaitOwn(v.Shared) // the workers are about to get the signal too, and must get it once
		}
		cancel(cause)
	})
	return ctx
}

// noteBinding reports where a worker will run. What was asked for and is not possible is reported
// to everybody for the first node: it is likely to be the same on the others.
func noteBinding(events *reporter, task *Local, id envmap.Identity, b envmap.Binding) {
	if task.numa == nil {
		return
	}
	bound := len(b.Nodes) > 0
	note := fmt.Sprintf("rank %d is bound to %s (%s)", id.Rank, b, b.Why)
	if !bound {
		note = fmt.Sprintf("rank %d is not bound: %s", id.Rank, b.Why)
	}
	events.send(EnvironmentNote{Text: note, Verbose: bound || id.NodeRank > 0})
	if err := task.NoMemoryNode(); err != nil && id.LocalRank == 0 {
		note := fmt.Sprintf("--bind %s prefers no memory node: %v", task.Config.Bind, err)
		events.send(EnvironmentNote{Text: note, Verbose: id.NodeRank > 0})
	}
}

// binding is b for package wrap.
func binding(b envmap.Binding) wrap.Binding {
	to := wrap.Binding{CPUs: b.CPUs}
	if b.Memory {
		to.Node = &b.Nodes[0]
	}
	return to
}
