package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A record is what a worker writes about itself when it starts, as DIR/RANK.json.
type record struct {
	PID int
	Env map[string]string
}

// number returns a variable of the worker, which must be a number.
func (r record) number(t *testing.T, name string) int {
	t.Helper()
	n, err := strconv.Atoi(r.Env[name])
	if err != nil {
		t.Errorf("rank %s has %s=%q, want a number", r.Env["RANK"], name, r.Env[name])
	}
	return n
}

// checkEnv checks that the worker's environment has these variables.
func (r record) checkEnv(t *testing.T, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got, found := r.Env[name]; !found {
			t.Errorf("rank %s does not have %s, want %q", r.Env["RANK"], name, value)
		} else if got != value {
			t.Errorf("rank %s has %s=%q, want %q", r.Env["RANK"], name, got, value)
		}
	}
}

// checkSignals waits for the end of a worker of the role signals, and checks that it has received
// one of these.
func (r record) checkSignals(t *testing.T, dir string, want ...string) {
	t.Helper()
	rank := r.Env["RANK"]
	if !eventually(waitLimit, func() bool { return stateOf(r.PID) == "X" }) {
		t.Errorf("rank %s has not ended", rank)
	}
	got, err := os.ReadFile(signalsFile(dir, rank))
	if err != nil {
		t.Errorf("rank %s received no signal, want %q", rank, want)
	} else if !slices.Contains(want, string(got)) {
		t.Errorf("rank %s received %q, want %q", rank, got, want)
	}
}

// worker is the command line of a worker program; see runWorker.
func worker(role, dir string, args ...string) []string {
	return append([]string{self, "worker", role, dir}, args...)
}

// leaveRecord writes this process's record. It appears in the directory when it is complete.
func leaveRecord(dir string) error {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	text, err := json.Marshal(record{os.Getpid(), env})
	if err != nil {
		return err
	}
	path := filepath.Join(dir, env["RANK"]+".json")
	draft := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return err
	}
	return os.Link(draft, path) // unlike a rename, it fails if the rank has a second worker
}

func countRecords(dir string) int {
	found, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	return len(found)
}

// records waits for the records of n workers and returns them by rank.
func records(t *testing.T, dir string, n int) []record {
	t.Helper()
	if !eventually(waitLimit, func() bool { return countRecords(dir) >= n }) {
		t.Fatalf("%d of %d workers have started", countRecords(dir), n)
	}
	all := make([]record, n)
	for rank := range all {
		text, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(rank)+".json"))
		if err == nil {
			err = json.Unmarshal(text, &all[rank])
		}
		if err != nil {
			t.Fatalf("cannot read the record of rank %d: %v", rank, err)
		}
	}
	checkNumberOfWorkers(t, dir, n)
	return all
}

func checkNumberOfWorkers(t *testing.T, dir string, want int) {
	t.Helper()
	if got := countRecords(dir); got != want {
		t.Errorf("%d workers have started, want %d", got, want)
	}
}
