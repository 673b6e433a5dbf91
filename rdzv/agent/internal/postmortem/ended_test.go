package postmortem

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// How programs have ended: testdata/ended has the stderr of each.
func TestEnded(t *testing.T) {
	const killed = true
	table := map[string]struct {
		message string
		last    string // of the lines, if it is not the message
		killed  bool   // by a signal
	}{
		// Python: what follows the exception does not replace it.
		"notes":          {message: "ValueError: batch 3 is empty", last: "of data set imagenet"},
		"chained":        {message: "ValueError: no learning rate"},
		"group":          {message: "ExceptionGroup: cannot read (2 sub-exceptions)", last: "    +------------------------------------"},
		"memory":         {message: "MemoryError"},
		"keyboard":       {message: "KeyboardInterrupt", killed: killed},
		"syntax":         {message: "SyntaxError: invalid syntax (syn.py, line 1)", last: "SyntaxError: invalid syntax"},
		"syntax-import":  {message: "SyntaxError: invalid syntax (syn.py, line 1)", last: "SyntaxError: invalid syntax"},
		"module":         {message: "/usr/bin/python3: No module named nosuchmodule"},
		"nofile":         {message: "python3: can't open file '/home/you/demo/nosuchfile.py': [Errno 2] No such file or directory"},
		"exit-text":      {message: "the data set is empty"},
		"ignored":        {message: "ValueError: batch 3 is empty"},
		"atexit":         {message: "ValueError: batch 3 is empty"},
		"lateerrors":     {message: "ValueError: batch 3 is empty"},
		"pinmemory":      {message: "ValueError: batch 3 is empty"},
		"asyncio":        {message: "ValueError: batch 3 is empty"},
		"process":        {message: "ValueError: the worker has no data"},
		"tqdm":           {message: "ValueError: batch 50 is empty"},
		"coloured-chain": {message: "RuntimeError: chained"},
		"coloured-group": {
			message: "ExceptionGroup: two (2 sub-exceptions)",
			last:    "    +------------------------------------",
		},
		"rich": {message: "ValueError: batch 30 is empty"},
		"leaked": {
			message: "ValueError: batch 3 is empty",
			last:    "  warnings.warn('resource_tracker: There appear to be %d '",
		},
		"leaked-exit": {
			message: "the data set is empty",
			last:    "  warnings.warn('resource_tracker: There appear to be %d '",
		},
		"argparse": {message: "argp.py: error: the following arguments are required: --lr"},
		"hydra": {
			message: "ValueError: no data set is configured",
			last:    "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.",
		},

		"emptyline":  {message: "ValueError: The config is wrong:", last: "lr must be positive"},
		"accelerate": {message: "ValueError: batch 3 is empty"},
		"pytest":     {message: "FAILED test_x.py::test_a - AssertionError: sums", last: "1 failed in 0.02s"},
		"wandb-exit": {message: "the data set is empty", last: "*"},

		// torch
		"elastic": {message: "ValueError: batch 3 is empty", last: "*"},
		"elastic-alone": {
			message: "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: inner.py FAILED",
			last:    "============================================================",
		},
		"dataloader":        {message: "RuntimeError: image 0 is truncated"},
		"dataloader-killed": {message: "RuntimeError: DataLoader worker (pid(s) 8726) exited unexpectedly"},
		"spawn":             {message: "ValueError: child 1 has no data"},

		// Signals: the reason is what was printed because of it, or just before.
		"segv": {killed: killed, last: "step 17"},
		"segv-faulthandler": {
			message: "Fatal Python error: Segmentation fault", killed: killed,
			last: `  File "/home/you/demo/segv.py", line 4 in <module>`,
		},
		"cxxabort": {
			message: "NCCL watchdog thread terminated with exception", killed: killed,
			last: "frame #5: <unknown function> + 0x1098ec (0x7f595d3838ec in /lib/x86_64-linux-gnu/libc.so.6)",
		},
		"cxxabort-faulthandler": {
			message: "NCCL watchdog thread terminated with exception", killed: killed,
			last: `  File "/home/you/demo/cxx.py", line 2 in <module>`,
		},
		"teardown-abort":        {message: "ValueError: batch 3 is empty", killed: killed},
		"teardown-faulthandler": {message: "ValueError: batch 3 is empty", killed: killed},
		"caught-killed":         {killed: killed, last: "step 19"},
		"hang-killed":           {message: "ValueError: batch 3 is empty", killed: killed, last: "in shard 7"},

		// Shells and launchers: neither a usage hint nor a line of dashes.
		"shell-exit":     {message: "no data"},
		"shell-notfound": {message: "bash: line 1: nosuchprogram: command not found"},
		"shell-segv":     {message: "bash: line 1:  8900 Segmentation fault      python3 segv.py"},
		"crlf": {
			message: "/usr/bin/env: ‘python3\\r’: No such file or directory",
			last:    "/usr/bin/env: use -[v]S to pass options in shebang lines",
		},
		"srun-option": {
			message: "srun: unrecognized option '--bogus'", last: "Try \"srun --help\" for more information",
		},
		"docker-option": {message: "unknown flag: --nosuch", last: "Run 'docker run --help' for more information"},
		"docker-daemon": {
			message: "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
			last:    "Run 'docker run --help' for more information",
		},
		"mpirun-missing": {
			message: "mpirun was unable to find the specified executable file, and therefore did not " +
				"launch the job.  This error was first reported for process rank 0; it may have occurred " +
				"for other processes as well.",
			last: dashes,
		},
		"mpirun-inner":        {message: "no data"},
		"mpirun-inner-python": {message: "ValueError: batch 3 is empty", last: dashes},

		// Another rdzv: what it reports.
		"nested-python":  {message: "ValueError: batch 3 is empty", last: "*"},
		"nested-python2": {message: "ValueError: batch 3 is empty", last: "*"},
		"nested-ddp":     {message: "ValueError: batch 3 is empty", last: "*"},
		"nested-shell":   {message: "no data", last: "*"},
		"nested-shell2":  {message: "no data", last: "*"},
		"nested-segv":    {message: "rank 1 of 2 failed first", last: "*"},
		"nested-cannot":  {message: "rdzv: cannot run exec: already rank 0 of job bash-efb0c764", last: "*"},
		"nested-worker":  {message: "rdzv: cannot run exec: already rank 0 of job rdzv-27a280eb", last: "*"},
	}
	files, err := filepath.Glob("testdata/ended/*.txt")
	if err != nil || len(files) != len(table) {
		t.Errorf("%d files, %v; want %d", len(files), err, len(table))
	}
	for name, want := range table {
		t.Run(name, func(t *testing.T) {
			stderr, err := os.ReadFile(filepath.Join("testdata", "ended", name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			f := Examine(stderr, "", want.killed)
			if f.Message != want.message {
				t.Errorf("message %q, want %q", f.Message, want.message)
			}
			last := want.last
			if last == "" {
				last = want.message
			}
			text := strings.TrimRight(strings.Join(f.Lines, "\n"), "\n")
			if last != "*" && !strings.HasSuffix("\n"+text, "\n"+last) {
				t.Errorf("the lines end with %q, want %q:\n%s", f.Lines[len(f.Lines)-1], last, text)
			}
		})
	}
}

const dashes = "--------------------------------------------------------------------------"
