package procfs

import (
	"bytes"
	"io/fs"
	"path"
	"strconv"
	"time"
)

// Scheduling has the total times of the main thread of a process so far, as the kernel's scheduler
// counts them.
type Scheduling struct {
	Ran    time.Duration // on a CPU
	Waited time.Duration // ready to run, without a CPU
}

// ReadScheduling reads /proc/PID/schedstat; all is 0 if there is none, as in a kernel without
// CONFIG_SCHED_INFO.
func ReadScheduling(proc fs.FS, pid int) Scheduling {
	text, _ := fs.ReadFile(proc, path.Join(strconv.Itoa(pid), "schedstat"))
	return parseScheduling(text)
}

// parseScheduling reads the first two numbers, in ns (the kernel's
// Documentation/scheduler/sched-stats.rst).
func parseScheduling(text []byte) Scheduling {
	words := bytes.Fields(text)
	if len(words) < 2 {
		return Scheduling{}
	}
	ran, err1 := strconv.ParseUint(string(words[0]), 10, 63)
	waited, err2 := strconv.ParseUint(string(words[1]), 10, 63)
	if err1 != nil || err2 != nil {
		return Scheduling{}
	}
	return Scheduling{time.Duration(ran), time.Duration(waited)}
}
