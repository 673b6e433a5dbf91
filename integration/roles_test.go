package integration

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An actor is a worker of the fault tests. Like worker it is this binary, started with its role:
//
//	family DIR       notes itself in DIR, with a descendant in a session of its own; SIGUSR1 makes it exit with 7
//	count DIR        counts the signals that it gets, until shortly after one that asks it to end; then it exits with 0
//	leave FILE DIR   as rank 0 exits with 0; the others do when FILE is there
//	until FILE DIR   exits with 0 when FILE is there
//	brood DIR        has descendants that are hard to end; the last rank exits with 7 once all are there
//	blab DIR         as rank 0 writes to standard error for ever; the last rank exits with 7 once all are there
//
// It is looked for before flags are parsed and tests are set up.
func init() {
	if len(os.Args) < 3 || os.Args[1] != "actor" {
		return
	}
	os.Exit(act(os.Args[2], os.Args[3:]))
}

func act(role string, args []string) int {
	switch role {
	case "family":
		return family(args)
	case "count":
		return countSignals(args[0])
	case "leave":
		if os.Getenv("RANK") == "0" {
			return work([]string{"record", args[1]})
		}
		return work([]string{"until", args[1], args[0]})
	case "until":
		return work([]string{"until", args[1], args[0]})
	case "brood":
		return brood(args[0])
	case "blab":
		return blab(args[0])
	default:
		return refuse(fmt.Errorf("no role %q", role))
	}
}

// actor is the command line of an actor.
func actor(role ...string) []string { return append([]string{self, "actor"}, role...) }

// workerCode is how a member of a family fails.
const workerCode = 7

func family(args []string) int {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	// It forks twice and starts a session: nothing but its environment ties it to this process.
	if err := exec.Command("setsid", "--fork", "sleep", "1000").Run(); err != nil {
		return refuse(err)
	}
	if err := note(args[0]); err != nil {
		return refuse(err)
	}
	select {
	case <-asked:
		return workerCode
	case <-time.After(2 * waitLimit):
		return notStopped
	}
}

func refuse(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// counted are the signals that an actor counts.
var counted = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// quietTime is how long a signal is waited for that must not come a second time.
const quietTime = 300 * time.Millisecond

func signalsFile(dir, rank string) string { return filepath.Join(dir, rank+".signals") }

// countSignals notes the signals so far as DIR/RANK.signals.
func countSignals(dir string) int {
	got := make(chan os.Signal, 100)
	signal.Notify(got, counted...)
	if err := note(dir); err != nil {
		return refuse(err)
	}
	var all []string
	late := time.After(2 * waitLimit)
	for {
		select {
		case s := <-got:
			all = append(all, unix.SignalName(s.(syscall.Signal)))
			if err := os.WriteFile(signalsFile(dir, os.Getenv("RANK")), []byte(strings.Join(all, " ")), 0o600); err != nil {
				return refuse(err)
			}
			if s != syscall.SIGUSR1 && s != syscall.SIGUSR2 {
				late = time.After(quietTime)
			}
		case <-late:
			return 0
		}
	}
}

// brood starts descendants that ignore SIGTERM, that nobody waits for, in sessions of their own, stopped, holding the
// standard streams.
func brood(dir string) int {
	script := `trap "" TERM INT HUP
		sleep 1000 &
		setsid --fork sleep 1000
		setsid --fork sh -c 'trap "" TERM; sleep 1000; sleep 1000'
		setsid --fork sh -c 'kill -STOP $$; sleep 1000'
		setsid --fork sh -c 'setsid --fork sleep 1000; sleep 1000'`
	children := exec.Command("sh", "-c", script)
	children.Stdout, children.Stderr = os.Stdout, os.Stderr
	if err := children.Run(); err != nil {
		return refuse(err)
	}
	return lastFails(dir)
}

// lastFails notes the rank, and ends it with 7 if it is the last one and all are there.
func lastFails(dir string) int {
	size, _ := strconv.Atoi(os.Getenv("WORLD_SIZE"))
	if err := note(dir); err != nil {
		return refuse(err)
	}
	if os.Getenv("RANK") == strconv.Itoa(size-1) && eventually(waitLimit, func() bool { return count(dir) == size }) {
		return workerCode
	}
	return untilStopped()
}

// blab fills whatever is behind standard error.
func blab(dir string) int {
	if os.Getenv("RANK") != "0" {
		return lastFails(dir)
	}
	if err := note(dir); err != nil {
		return refuse(err)
	}
	line := []byte(strings.Repeat("blah ", 100) + "\n")
	for {
		if _, err := os.Stderr.Write(line); err != nil {
			return notStopped
		}
	}
}
