// Package exitcode shows the end of a process as a shell does.
package exitcode

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// bySignal plus n is the code of a process that signal n has ended.
const bySignal = 128

// Of is the code of a process that has exited with a code, or was ended by a signal unless that is
// 0.
func Of(code, signal int) int {
	if signal != 0 {
		return bySignal + signal
	}
	return code
}

// SignalName is "SIGKILL" for 9, and "" for 0.
func SignalName(signal int) string {
	if signal == 0 {
		return ""
	}
	if name := unix.SignalName(syscall.Signal(signal)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", signal)
}
