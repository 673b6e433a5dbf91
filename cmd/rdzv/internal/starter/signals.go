package starter

import (
	"context"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/rdzv/agent"
)

// Signals are those that the starter has to catch.
var Signals = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGPIPE,
}

// ends tells whether a signal ends the job.
func ends(s syscall.Signal) bool {
	return slices.Contains([]syscall.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
	}, s)
}

// signal passes a signal on. All agents get it, whether they have joined or not, as a launcher
// would send it: each passes it to its own workers. The second one ends the job at once: agents
// take SIGINT after another signal for that.
func (j *job) signal(s os.Signal) {
	number, _ := s.(syscall.Signal)
	now := time.Now()
	switch {
	case number == syscall.SIGTSTP:
		j.sleep()
	case number == syscall.SIGCONT:
		j.all(Order{Wake: true})
	case number == syscall.SIGUSR1, number == syscall.SIGUSR2:
		j.all(Order{Signal: int(number)})
	case !ends(number):
	case j.firstSignal.IsZero():
		j.firstSignal = now
		j.all(Order{Signal: int(number)})
	case now.Sub(j.firstSignal) > agent.SentTwice:
		if j.hard == nil {
			j.hard = time.After(hardWait)
		}
		j.all(Order{Signal: int(syscall.SIGINT)})
	}
}

// sleep stops this process, as SIGTSTP does, when the nodes know. SIGTSTP itself does not stop a
// process that has caught it. The nodes are told to go on when SIGCONT is received, and not here:
// this thread runs on for some time after it has stopped the process.
func (j *job) sleep() {
	j.all(Order{Sleep: true})
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, n := range j.nodes {
		select {
		case <-n.written():
		case <-ctx.Done():
		}
	}
	_ = unix.Kill(os.Getpid(), syscall.SIGSTOP)
}
