package host

import (
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A memory policy with which the agent was started, as by numactl, is kept. It belongs to a thread.
func TestCheckMemoryPolicy(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := CheckMemoryPolicy(); err != nil {
		t.Error(err)
	}
	const mpolDefault, mpolLocal = 0, 4
	setPolicy := func(mode uintptr) {
		if _, _, errno := unix.Syscall(unix.SYS_SET_MEMPOLICY, mode, 0, 0); errno != 0 {
			t.Fatal(errno)
		}
	}
	setPolicy(mpolLocal)
	err := CheckMemoryPolicy()
	setPolicy(mpolDefault)
	if err == nil || !strings.Contains(err.Error(), "was started with a memory policy") {
		t.Errorf("error %v, want that there is a policy", err)
	}
}
