package integration

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// threadFails is a Python program whose rank 1 fails in its main thread and does not end, because
// another thread goes on, as NCCL's or a DataLoader's do.
const threadFails = `import os, threading, time
if os.environ["RANK"] == "1":
    threading.Thread(target=time.sleep, args=(1000,)).start()
    raise ValueError("bad batch")
time.sleep(1000)`

// tracebackLine is how a rank is named that has printed a traceback and runs.
const tracebackLine = ` printed a traceback \d\S* ago and is still running: ValueError: bad batch`

// A rank that has printed a traceback and does not end is named: while the job runs, by rdzv status,
// and as the first suspect when the job stalls.
func TestTracebackOfRunningRank(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	name := filepath.Base(p.root)
	flags := []string{"--job", name, "--tag", "--stall-timeout", "25s", "--grace", "2s"}
	job := p.start(openMPI(p, 2, flags, []string{python, "-c", threadFails})...)
	job.waitFor("ValueError: bad batch")
	text, named := "", regexp.MustCompile(`rank 1 \(\S+\)`+tracebackLine)
	if !eventually(waitLimit, func() bool {
		asked := p.start(*rdzvBin, "status", "--job", name)
		<-asked.done
		lines, _ := asked.output()
		text = strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
		return named.MatchString(text)
	}) {
		t.Errorf("rdzv status prints %q, want %q in it", text, named)
	}
	job.checkCode(119)
	lines, _ := job.output()
	text = strings.Join(lines, "\n")
	for _, want := range []string{
		`rdzv: rank 1` + tracebackLine,
		`rdzv: stalled for \d+s \(--stall-timeout\): rank 1 on \S+ ` +
			`printed a traceback and is still running: ValueError: bad batch`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("the job does not print %q", want)
		}
	}
}

// handled is a Python program that prints the traceback of an exception that it handles, and goes on.
const handled = `import sys, time, traceback
try:
    raise ValueError("bad batch")
except ValueError:
    traceback.print_exc()
time.sleep(2)
print("goes on", file=sys.stderr, flush=True)
time.sleep(15)`

// A traceback after which the program goes on writing ends nothing, and is not reported.
func TestHandledTraceback(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	job := p.start(openMPI(p, 2, []string{"--tag"}, []string{python, "-c", handled})...)
	job.checkCode(0)
	if lines := job.linesWith("rdzv: ", "traceback"); len(lines) > 0 {
		t.Errorf("rdzv printed %q", lines)
	}
}
