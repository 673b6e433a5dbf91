package integration

import (
	"os"
	"slices"
	"testing"
)

// recordedProgram reports why it fails by torch's own means, @record.
const recordedProgram = `import os, time
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    if os.environ["RANK"] == "0":
        time.sleep(1000)
    raise KeyError("of rank " + os.environ["RANK"])
main()
`

// The report has what torch writes into TORCHELASTIC_ERROR_FILE.
func TestErrorFile(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	job := p.start(openMPI(p, 2, []string{"--show", "none"}, []string{python, "-c", recordedProgram})...)
	job.checkCode(1)
	for _, want := range []string{
		"message  KeyError: 'of rank 1'", "| KeyError: 'of rank 1'", "in main",
	} {
		if len(job.linesWith("rdzv:   ", want)) == 0 {
			t.Errorf("no line of the report contains %q", want)
		}
	}
}

// recordedKeyError is the same for a single rank.
const recordedKeyError = `from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    raise KeyError("epoch")
main()
`

// The report names the user's exception under torch's @record even if a wrapper runs the program in
// other namespaces or as another user: torch's file is found although the wrapper is in another PID
// namespace. If it cannot be found or opened there, the report does not have torch's complaint
// about that.
func TestErrorFileInsideWrapper(t *testing.T) {
	t.Parallel()
	unshare := []string{"unshare", "--mount"}
	if os.Geteuid() != 0 {
		unshare = []string{"unshare", "--user", "--map-root-user", "--mount"}
	}
	in := func(options ...string) []string { return append(slices.Clone(unshare), options...) }
	wrappers := map[string][]string{
		"PID namespace": in("--pid", "--fork", "--mount-proc", "sh", "-c", `exec "$@" 2>/dev/null`, "sh"),
		"other TMPDIR":  in("sh", "-c", `mount -t tmpfs none "$TMPDIR" && exec "$@"`, "sh"),
	}
	if os.Geteuid() == 0 {
		wrappers["other user"] = []string{
			"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
		}
	}
	for name, wrapper := range wrappers {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			program := append(wrapper, python, "-c", recordedKeyError)
			job := p.start(direct(p, 1, nil, program)...)
			job.checkCode(1)
			if len(job.linesWith("rdzv: rank 0 failed first: exit 1", ": KeyError: 'epoch'")) != 1 {
				t.Errorf("rdzv printed %q, want one line with the exception",
					job.linesWith("rdzv: "))
			}
		})
	}
}
