package holder

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"
)

// A holder that was stopped, or whose machine was, until the time to kill is over kills what is left
// nevertheless, and has the whole time again.
func TestKillsAfterStop(t *testing.T) {
	runtime.LockOSThread() // the killer looks for children of its thread
	defer runtime.UnlockOSThread()
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	memory, err := mapShared(int(unsafe.Sizeof(Shared{})))
	if err != nil {
		t.Fatal(err)
	}
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(ends[0])
	defer syscall.Close(ends[1])
	p := preparation{config: &Config{}, shared: (*Shared)(unsafe.Pointer(&memory[0]))}
	defer p.release()
	if err := p.make(ends[1]); err != nil {
		t.Fatal(err)
	}
	k := &p.holder.killer
	k.begun, k.called, k.until = true, 1, 2 // ns after the start of this machine
	if over := k.all(); over {
		t.Error("the time is over")
	}
	if wait := k.until - clock(clockBoottime); wait < killWait/2 || wait > killWait {
		t.Errorf("%d ns are left, want %d", wait, killWait)
	}
	if err := child.Wait(); child.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Error(err)
	}
}
