//go:build !execholder

package holder

import (
	"bufio"
	"bytes"
	"os/exec"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
)

// A fork of a Go program may call nothing of the runtime (child.go). What the compiler adds is seen
// in its assembly alone: checks of the stack and of bounds, write barriers, the race detector.
func TestChildCallsOnlySystemCalls(t *testing.T) {
	functions := compile(t)
	const kernel = "syscall.RawSyscall6"
	own := reflect.TypeFor[holder]().PkgPath()
	checked := map[string]bool{kernel: true, own + ".vfork": true}
	var check func(name, caller string)
	check = func(name, caller string) {
		if checked[name] {
			return
		}
		f, ok := functions[name]
		if !ok || !f.nosplit {
			t.Errorf("%s calls %q, want functions with go:nosplit, and %s", caller, name, kernel)
			return
		}
		checked[name] = true
		for _, called := range f.calls {
			check(called, name)
		}
	}
	check(own+".(*holder).clone", "the agent")
	if !checked[own+".(*starter).become"] {
		t.Error("the start of workers has not been checked")
	}
	if len(checked) < 20 {
		t.Errorf("checked only %v", checked)
	}
}

// assembly is what this test reads of the assembly of a function. A call through a pointer has no
// name.
type assembly struct {
	nosplit bool
	calls   []string
}

// compile compiles this package in the same way as the test.
func compile(t *testing.T) map[string]*assembly {
	args := []string{"build", "-gcflags=-S"}
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-race" && s.Value == "true" {
			args = append(args, "-race")
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", append(args, ".")...).CombinedOutput()
	if err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	functions := map[string]*assembly{}
	current := &assembly{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		name, kind, _ := strings.Cut(lines.Text(), " STEXT ")
		if kind != "" {
			current = &assembly{nosplit: strings.Contains(kind, "nosplit ")}
			functions[name] = current
		} else if _, called, ok := strings.Cut(name, " t=R_CALL"); ok { // also R_CALLARM64, R_CALLIND
			_, called, _ = strings.Cut(called, " ")
			current.calls = append(current.calls, strings.TrimSuffix(called, "+0"))
		}
	}
	return functions
}
