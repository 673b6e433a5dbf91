package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdzv/envmap"
	"rdzv/internal/colours"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/output"
	"rdzv/rdzv/agent/internal/postmortem"
	"rdzv/rdzv/agent/internal/recorders"
	"rdzv/rdzv/status"
	"rdzv/wrap"
)

// workerOutput handles the output of this agent's workers in one attempt: it selects the workers
// that are shown, opens the logs, knows when each worker has last written, and reports lost output.
type workerOutput struct {
	local  *Local
	events *reporter
	world  rdzv.World
	logs   []*os.File // of each; nil for those without
	last   []wrap.LastOutput
}

func outputOf(l *Local, events *reporter, w rdzv.World) workerOutput {
	return workerOutput{
		local: l, events: events, world: w, logs: make([]*os.File, l.all().workers()),
		last: make([]wrap.LastOutput, l.all().workers()),
	}
}

// checkShown shows all ranks if the job has none of those that are to be shown.
func (o *workerOutput) checkShown() {
	l, size, localSize := o.local, o.world.Size, o.world.Seat.LocalSize
	if l.Config.Show == "none" || l.shown.Count(size, localSize) > 0 {
		return
	}
	why := fmt.Sprintf("the last rank of the job is %d", size-1)
	if strings.HasPrefix(l.Config.Show, "local:") {
		why = fmt.Sprintf("the last local rank is %d", localSize-1)
	}
	if l.shown, _ = output.ParseRanks(""); o.world.Seat.Has(0) {
		o.events.send(FlagIgnored{"--show " + l.Config.Show, why})
	}
}

// files are the logs of this run.
func (o *workerOutput) files() output.Logs { return o.local.Config.logs(o.world) }

// logWait is how long the logs may take to be opened.
const logWait = 5 * time.Second

// open opens the logs, and prepares the flight recorders in their directory. The workers run
// without them if that fails.
func (o *workerOutput) open() *recorders.Set {
	seat, logs := o.world.Seat, o.files()
	if logs.Dir == "" {
		return &recorders.Set{}
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), logWait, wrap.ErrLogBlocked)
	defer cancel()
	python := o.local.setup.Program.Python != ""
	var prepared *recorders.Set
	opened, err := host.Await(ctx, func() {}, func() ([]*os.File, error) {
		files, err := logs.Open(seat.AllRanks())
		if err == nil {
			prepared = recorders.Prepare(filepath.Dir(logs.File(0)), python)
		}
		if err == nil && seat.LocalRankOf(0) == 0 {
			if err := logs.Link(); err != nil {
				o.events.diagnose(Warning, err)
			}
		}
		return files, err
	})
	if err != nil {
		o.events.diagnose(Warning, fmt.Errorf("cannot open the logs: %w", err))
		return &recorders.Set{}
	}
	o.logs = opened
	if seat.Has(0) {
		dir := filepath.Dir(logs.File(0))
		o.events.send(EnvironmentNote{Text: "the output of each rank is in " + dir, Verbose: true})
	}
	return prepared
}

// close closes the logs.
func (o *workerOutput) close() { output.Close(o.logs) }

// set sets what becomes of the output of the i-th worker. If it is shown and nothing else, the
// worker gets stdout of its task itself.
func (o *workerOutput) set(worker *wrap.Worker, i int) {
	task := o.local.all().of(i)
	l, c, seat := o.local, &task.Config, o.world.Seat
	shown := l.shown.Has(seat.RankOf(i), seat.LocalRankOf(i))
	worker.LastOutput, worker.Line = &o.last[i], c.Line
	if shown {
		worker.Stdout, worker.Stderr = c.Stdout, c.Stderr
	}
	if shown && c.Tag == nil && !c.Framed && o.logs[i] == nil {
		worker.Capture = !c.NoCapture && !l.keepTerminal(task)
		return
	}
	worker.Output = &wrap.Output{
		Log: o.logs[i], Hold: l.shown.Count(o.world.Size, seat.LocalSize) > 1,
		Relayed: l.Placement.Launcher != envmap.None, Framed: c.Framed,
	}
	if c.Framed {
		worker.Output.Tag = strconv.Itoa(seat.RankOf(i)) + " "
	} else if c.Tag != nil {
		worker.Output.Tag = c.Tag(seat.RankOf(i), host.Name())
	}
}

// logOf is the file that has the output of a rank, "" if there is none.
func (o *workerOutput) logOf(rank int) string {
	if o.local.Config.LogDir == "" {
		return ""
	}
	return o.files().File(rank)
}

// lastTime is when a worker has last written something.
func (o *workerOutput) lastTime() (last time.Time) {
	for i := range o.last {
		if at := o.last[i].Time(); at.After(last) {
			last = at
		}
	}
	return last
}

// maxLine is how much of a line other agents are told, in bytes.
const maxLine = 200

// traceback is the last one that the i-th worker has printed; nil if none is known.
func (o *workerOutput) traceback(i int) *status.Traceback {
	text, at := o.last[i].Traceback()
	exception := postmortem.Exception(text)
	if exception == "" {
		return nil
	}
	return &status.Traceback{Seconds: time.Since(at).Seconds(), Exception: cut(exception)}
}

// wroteSince tells whether another worker than the i-th one has written after some time, as far as
// that is read.
func (o *workerOutput) wroteSince(at time.Time, i int) bool {
	for j := range o.last {
		if j != i && o.last[j].Time().After(at) {
			return true
		}
	}
	return false
}

// lastLine is the last line that the i-th worker has written; "" if none is known.
func (o *workerOutput) lastLine(i int) string {
	return cut(colours.WithoutEscapes(o.last[i].Line()))
}

// cut is a line with at most maxLine bytes.
func cut(line string) string {
	if len(line) > maxLine {
		line = line[:maxLine] + "..."
	}
	return strings.ToValidUTF8(line, "")
}

// isRead tells whether all that the workers write is read.
func (o *workerOutput) isRead() bool {
	return o.local.Config.Tag != nil || o.local.Config.Framed || !slices.Contains(o.logs, nil)
}

// logLost reports that the log of the i-th worker lacks some of its output.
func (o *workerOutput) logLost(i int, reason error, bytes int64) {
	rank := o.world.Seat.RankOf(i)
	o.events.send(LogLost{
		Rank: rank, File: o.files().File(rank), Err: reason, Text: reason.Error(), Bytes: bytes,
	})
}

// lost reports that some of the output of the i-th worker could not be shown.
func (o *workerOutput) lost(i int, stream string, reason error, bytes int64) {
	e := OutputLost{
		Rank: o.world.Seat.RankOf(i), Stream: stream, Err: reason, Text: reason.Error(), Bytes: bytes,
	}
	if o.logs[i] != nil {
		e.Log = o.files().File(e.Rank)
	}
	o.events.send(e)
}
