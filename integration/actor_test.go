package integration

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// An actor is a worker of the fault tests. Like worker it is this binary, started with its role:
//
//	family DIR    notes itself in DIR, with a descendant in a session of its own; SIGUSR1 makes it exit with 7
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
	default:
		return refuse(fmt.Errorf("no role %q", role))
	}
}

// actor is the command line of an actor.
func actor(role ...string) []string { return append([]string{self, "actor"}, role...) }

// familyCode is how a member of a family fails.
const familyCode = 7

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
		return familyCode
	case <-time.After(2 * patience):
		return tooLong
	}
}

func refuse(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
