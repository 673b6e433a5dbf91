package stacks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// NotInstalled is the problem if there is no py-spy.
const NotInstalled = "py-spy is not installed"

// pyThread is one thread in what "py-spy dump --json" prints.
type pyThread struct {
	ID     int       `json:"os_thread_id"` // 0 if unknown
	Name   string    `json:"thread_name"`
	Frames []pyFrame `json:"frames"` // the innermost call first
}

type pyFrame struct {
	Name  string `json:"name"`
	File  string `json:"filename"`
	Short string `json:"short_filename"` // without the directories of sys.path; may be missing
	Line  int    `json:"line"`
}

// maxFrames is how many calls of a stack are kept, maxAllFrames how many of all workers of an
// agent, and maxFrame their size in bytes.
const (
	maxFrames    = 64
	maxAllFrames = 1024
	maxFrame     = 200
)

// PySpy returns what Observer.PySpy needs for the executable file of py-spy. It runs in an
// environment. The error, if it fails, is the line of its standard error that says why.
func PySpy(file string, environ []string) func(context.Context, ...string) ([]byte, error) {
	return func(ctx context.Context, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, file, append([]string{"dump"}, args...)...)
		cmd.Env, cmd.WaitDelay = environ, 100*time.Millisecond
		out, err := cmd.Output()
		var failed *exec.ExitError
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			err = errors.New("timed out")
		case errors.As(err, &failed):
			reason, _, _ := strings.Cut(strings.TrimSpace(string(failed.Stderr)), "\n")
			err = errors.New(strings.TrimPrefix(reason, "Error: "))
		}
		return out, err
	}
}

// python is the Python stack of the main thread, and what the other threads are doing. py-spy does
// not stop the process (--nonblocking).
func (o *Observer) python(ctx context.Context, pid, calls int) (
	p pythonStack, problem string,
) {
	if o.PySpy == nil {
		return p, NotInstalled
	}
	out, err := o.PySpy(ctx, "--nonblocking", "--json", "--pid", strconv.Itoa(pid))
	if err == nil {
		p, err = parsePySpy(out, pid, calls)
	}
	if err != nil {
		return pythonStack{}, fmt.Sprintf("py-spy failed: %v", err)
	}
	return p, ""
}

// pythonStack has the fields of a Worker that py-spy knows.
type pythonStack struct {
	calls  []string
	at     string
	others []Count
}

func parsePySpy(out []byte, pid, calls int) (p pythonStack, err error) {
	var threads []pyThread
	if err := json.Unmarshal(out, &threads); err != nil {
		return p, fmt.Errorf("cannot read what it prints: %w", err)
	}
	var texts []string
	for _, t := range threads {
		switch {
		case len(t.Frames) == 0:
		case t.ID == pid, t.ID == 0 && t.Name == "MainThread":
			p.calls, p.at = t.stack(calls), t.at()
		default:
			texts = append(texts, t.Frames[0].String())
		}
	}
	if p.calls == nil {
		return p, errors.New("it shows no main thread")
	}
	p.others = counts(texts)
	return p, nil
}

// at is the innermost line that is not in a library, or "".
func (t pyThread) at() string {
	for _, f := range t.Frames {
		if !libraryFile().MatchString(f.File) {
			f.Short = cmp.Or(f.Short, path.Base(f.File))
			return f.place()
		}
	}
	return ""
}

// libraryFile is the path of a file that belongs to Python or to an installed package.
var libraryFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^<|/lib(64)?/python[0-9.]+/|/(site|dist)-packages/`)
})

// stack is at most so many lines.
func (t pyThread) stack(calls int) (stack []string) {
	for i, f := range t.Frames {
		if i == calls-1 && len(t.Frames) > calls {
			return append(stack, fmt.Sprintf("%d more calls", len(t.Frames)-i))
		}
		stack = append(stack, f.String())
	}
	return stack
}

// String is "forward (model.py:12)".
func (f pyFrame) String() string {
	return limited(fmt.Sprintf("%s (%s)", f.Name, f.place()))
}

// place is "model.py:12".
func (f pyFrame) place() string {
	file := cmp.Or(f.Short, f.File)
	if f.Line != 0 {
		file += ":" + strconv.Itoa(f.Line)
	}
	return limited(file)
}

func limited(text string) string { return text[:min(len(text), maxFrame)] }
