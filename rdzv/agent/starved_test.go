package agent_test

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/rdzv/agent"
)

var (
	// starves does something for 3 s and writes nothing, at the lowest priority on a CPU that a busy
	// process uses.
	starves = role("starves", func() int {
		var allowed, one unix.CPUSet
		if err := unix.SchedGetaffinity(0, &allowed); err != nil {
			panic(err)
		}
		for cpu := 0; one.Count() == 0; cpu++ {
			if allowed.IsSet(cpu) {
				one.Set(cpu)
			}
		}
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			panic(err)
		}
		self, _ := os.Executable()
		other := exec.Command(self)
		other.Env = append(os.Environ(), roleEnv+"="+busy, "OF="+strconv.Itoa(os.Getpid()))
		if err := other.Start(); err != nil {
			panic(err)
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, 19); err != nil {
			panic(err)
		}
		useCPU(3 * time.Second)
		return 0
	})
	// busy uses a CPU until its parent has ended.
	busy = role("busy", func() int {
		for os.Getenv("OF") == strconv.Itoa(os.Getppid()) {
			useCPU(10 * time.Millisecond)
		}
		return 0
	})
)

func useCPU(d time.Duration) {
	for begin := time.Now(); time.Since(begin) < d; {
	}
}

// The main thread of a process is the one that counts.
func init() {
	if os.Getenv(roleEnv) == starves {
		runtime.LockOSThread()
	}
}

// A job has not stalled while its workers are ready to run and get no CPU.
func TestStarvedWorker(t *testing.T) {
	r := &recorder{t: t}
	c := config(t, starves, 1)
	c.StallTimeout, c.Tag = time.Second, func(int, string) string { return "" }
	result, err := r.run(t.Context(), c)
	checkCode(t, result, err, 0)
	for _, e := range r.events {
		if e, is := e.(agent.Stalled); is {
			t.Errorf("stalled: %v, want no stall", e.Stall)
		}
	}
}
