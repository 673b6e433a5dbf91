package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// failCode is how workers fail whose role does not say otherwise.
	failCode = 7
	// notStopped is how a worker ends if it should have been stopped and was not.
	notStopped = 99
)

// A role is what a worker program does. Each leaves its record in DIR.
//
//	record DIR              exits with 0
//	wait DIR                waits until it is stopped
//	until DIR FILE          exits with 0 when FILE exists
//	leave DIR FILE          the same, but rank 0 exits with 0 at once
//	reach DIR LATE END      uses MASTER_PORT as torch does: rank 0 listens, and each rank connects,
//	                        the last one when the file LATE exists, or if that is END not at all;
//	                        exits with 0 when END exists
//	load DIR FILES [fails]  rank 0 loads a library as torch; FILES notes whether another rank has
//	                        started too early or late; fails: rank 0 fails while it loads
//	exit DIR RANK CODE      that rank exits with CODE when all have started; the others wait
//	die DIR RANK SIGNAL     the same with a signal, by number
//	session DIR             has a descendant in another session; exits with 7 on SIGUSR1
//	descendants DIR         has descendants that are hard to kill; the last rank exits with 7 when
//	                        all have started, the others wait
//	flood DIR FILE          rank 0 writes to standard error for ever; the last rank exits with 7 when
//	                        all have started and FILE exists, the others wait
//	lines DIR N             writes N numbered lines to stdout
//	count DIR               writes numbers to stdout for ever, and each then to DIR/count.RANK
//	signals DIR             notes the signals that it receives; exits with 0 shortly after one
//	                        that asks it to end
var roles = map[string]func(dir string, args []string) (int, error){
	"record":      func(dir string, _ []string) (int, error) { return 0, leaveRecord(dir) },
	"wait":        wait,
	"until":       until,
	"leave":       leave,
	"reach":       reach,
	"load":        load,
	"exit":        exit,
	"die":         die,
	"session":     withSession,
	"descendants": withDescendants,
	"flood":       flood,
	"lines":       writeLines,
	"count":       countLines,
	"signals":     noteSignals,
}

// runWorker is the main function of worker programs.
func runWorker(args []string) int {
	role, found := roles[args[0]]
	if !found {
		return reportError(fmt.Errorf("unknown role %q", args[0]))
	}
	code, err := role(args[1], args[2:])
	if err != nil {
		return reportError(err)
	}
	return code
}

func reportError(err error) int {
	fmt.Fprintf(os.Stderr, "worker of rank %s: %v\n", os.Getenv("RANK"), err)
	return 1
}

func wait(dir string, _ []string) (int, error) {
	if err := leaveRecord(dir); err != nil {
		return 0, err
	}
	return untilStopped(), nil
}

// untilStopped waits for the signal that ends this process, but not for ever.
func untilStopped() int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitLimit)
	defer cancel()
	<-ctx.Done()
	return notStopped
}

func until(dir string, args []string) (int, error) {
	if err := leaveRecord(dir); err != nil {
		return 0, err
	}
	return untilExists(args[0], 0), nil
}

// untilExists waits for a file and returns the code.
func untilExists(file string, code int) int {
	exists := func() bool { _, err := os.Stat(file); return err == nil }
	if !eventually(waitLimit, exists) {
		return notStopped
	}
	return code
}

func leave(dir string, args []string) (int, error) {
	if os.Getenv("RANK") == "0" {
		return 0, leaveRecord(dir)
	}
	return until(dir, args)
}

func exit(dir string, args []string) (int, error) {
	code, err := strconv.Atoi(args[1])
	if err != nil {
		return 0, err
	}
	return failWhenAllRun(dir, args[0], func() (int, error) { return code, nil })
}

// die becomes a shell first, because Go programs catch SIGSEGV and similar signals.
func die(dir string, args []string) (int, error) {
	return failWhenAllRun(dir, args[0], func() (int, error) {
		return 0, syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -" + args[1] + " $$"},
			os.Environ())
	})
}

// failWhenAllRun calls fail in the failing rank when all ranks have started. The others wait.
func failWhenAllRun(dir, failing string, fail func() (int, error)) (int, error) {
	size, err := strconv.Atoi(os.Getenv("WORLD_SIZE"))
	if err != nil {
		return 0, err
	}
	if os.Getenv("RANK") != failing {
		return wait(dir, nil)
	}
	if err := leaveRecord(dir); err != nil {
		return 0, err
	}
	if !eventually(waitLimit, func() bool { return countRecords(dir) == size }) {
		return notStopped, nil
	}
	return fail()
}

// lastFails calls fail in the last rank when all ranks have started. The others wait.
func lastFails(dir string, fail func() (int, error)) (int, error) {
	size, err := strconv.Atoi(os.Getenv("WORLD_SIZE"))
	if err != nil {
		return 0, err
	}
	return failWhenAllRun(dir, strconv.Itoa(size-1), fail)
}

func withSession(dir string, _ []string) (int, error) {
	failNow := make(chan os.Signal, 1)
	signal.Notify(failNow, syscall.SIGUSR1)
	// setsid forks twice, so that only the environment connects the descendant to this process.
	if err := exec.Command("setsid", "--fork", "sleep", "1000").Run(); err != nil {
		return 0, err
	}
	if err := leaveRecord(dir); err != nil {
		return 0, err
	}
	select {
	case <-failNow:
		return failCode, nil
	case <-time.After(2 * waitLimit):
		return notStopped, nil
	}
}

// withDescendants starts descendants that ignore SIGTERM, that no process waits for, that have
// sessions of their own, are stopped, or have the standard streams open.
func withDescendants(dir string, _ []string) (int, error) {
	script := `trap "" TERM INT HUP
		sleep 1000 &
		setsid --fork sleep 1000
		setsid --fork sh -c 'trap "" TERM; sleep 1000; sleep 1000'
		setsid --fork sh -c 'kill -STOP $$; sleep 1000'
		setsid --fork sh -c 'setsid --fork sleep 1000; sleep 1000'`
	descendants := exec.Command("sh", "-c", script)
	descendants.Stdout, descendants.Stderr = os.Stdout, os.Stderr
	if err := descendants.Run(); err != nil {
		return 0, err
	}
	return lastFails(dir, func() (int, error) { return failCode, nil })
}

func flood(dir string, args []string) (int, error) {
	if os.Getenv("RANK") != "0" {
		return lastFails(dir, func() (int, error) { return untilExists(args[0], failCode), nil })
	}
	if err := leaveRecord(dir); err != nil {
		return 0, err
	}
	line := []byte(strings.Repeat("text ", 100) + "\n")
	for {
		if _, err := os.Stderr.Write(line); err != nil {
			return notStopped, nil
		}
	}
}

var notedSignals = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
	syscall.SIGUSR2,
}

// lastingSignals do not end a job. Workers note the last two only with an argument: terminals and
// shells send them too.
var lastingSignals = []os.Signal{
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT,
}

// quietTime is how long to wait for a second signal, which must not arrive.
const quietTime = 300 * time.Millisecond

// signalsFile is where a worker notes the signals that it has received so far.
func signalsFile(dir, rank string) string { return filepath.Join(dir, rank+".signals") }

func noteSignals(dir string, args []string) (int, error) {
	received := make(chan os.Signal, 100)
	signal.Notify(received, notedSignals...)
	if len(args) > 0 {
		signal.Notify(received, lastingSignals...)
	}
	if err := leaveRecord(dir); err != nil {
		return 0, err
	}
	file := signalsFile(dir, os.Getenv("RANK"))
	var names []string
	end := time.After(2 * waitLimit)
	for {
		select {
		case s := <-received:
			names = append(names, unix.SignalName(s.(syscall.Signal)))
			if err := os.WriteFile(file, []byte(strings.Join(names, " ")), 0o600); err != nil {
				return 0, err
			}
			if !slices.Contains(lastingSignals, s) {
				end = time.After(quietTime)
			}
		case <-end:
			return 0, nil
		}
	}
}
