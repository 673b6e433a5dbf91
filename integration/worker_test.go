package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A record is what a worker notes of itself as the first thing it does, as DIR/RANK.json.
type record struct {
	PID int
	Env map[string]string
}

// number returns a variable of the worker that must be a number.
func (r record) number(t *testing.T, name string) int {
	t.Helper()
	n, err := strconv.Atoi(r.Env[name])
	if err != nil {
		t.Errorf("rank %s has %s=%q, which is no number", r.Env["RANK"], name, r.Env[name])
	}
	return n
}

// worker is the command line of a worker with the role; see work.
func worker(role ...string) []string { return append([]string{self, "worker"}, role...) }

// notStopped is how a worker ends that nobody has stopped.
const notStopped = 99

// work is a worker's main: it notes itself in the directory role[1], then plays role[0].
//
//	record DIR              ends with 0
//	wait DIR                waits to be stopped
//	until DIR FILE          ends with 0 once FILE is there
//	exit DIR RANK CODE      once all are there, that rank exits with CODE; the others wait to be stopped
//	die DIR RANK SIGNAL     the same with a signal, by number
func work(role []string) int {
	if err := note(role[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	switch role[0] {
	case "record":
		return 0
	case "until":
		if eventually(waitLimit, func() bool { _, err := os.Stat(role[2]); return err == nil }) {
			return 0
		}
		return notStopped
	case "exit", "die":
		if os.Getenv("RANK") == role[2] {
			return fail(role)
		}
	}
	return untilStopped()
}

// untilStopped waits for the signal that ends this process. The deadline is for a worker that nobody stops.
func untilStopped() int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitLimit)
	defer cancel()
	<-ctx.Done()
	return notStopped
}

func fail(role []string) int {
	size, _ := strconv.Atoi(os.Getenv("WORLD_SIZE"))
	if !eventually(waitLimit, func() bool { return count(role[1]) == size }) {
		return notStopped
	}
	if role[0] == "exit" {
		code, _ := strconv.Atoi(role[3])
		return code
	}
	// Go catches SIGSEGV and its like in every program of its own, so the worker becomes one that does not.
	err := syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -" + role[3] + " $$"}, os.Environ())
	fmt.Fprintln(os.Stderr, err)
	return notStopped
}

// note writes the record aside first, so that whoever sees it sees all of it.
func note(dir string) error {
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
	aside := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(aside, text, 0o600); err != nil {
		return err
	}
	return os.Link(aside, path) // not a rename: a second worker of that rank fails here
}

func count(dir string) int {
	found, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	return len(found)
}

// records waits for n workers in dir and returns what they noted, in the order of their ranks.
func records(t *testing.T, dir string, n int) []record {
	t.Helper()
	if !eventually(waitLimit, func() bool { return count(dir) >= n }) {
		t.Fatalf("%d of %d workers are in %s", count(dir), n, dir)
	}
	all := make([]record, n)
	for rank := range all {
		text, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(rank)+".json"))
		if err == nil {
			err = json.Unmarshal(text, &all[rank])
		}
		if err != nil {
			t.Fatalf("no record of rank %d: %v", rank, err)
		}
	}
	if count(dir) != n {
		t.Fatalf("%d workers for %d ranks", count(dir), n)
	}
	return all
}
