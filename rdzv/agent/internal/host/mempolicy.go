package host

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CheckMemoryPolicy checks whether workers can get a memory policy: this process has none, which
// numactl or srun --mem-bind may have set, and the kernel allows one. Containers often forbid it.
func CheckMemoryPolicy() error {
	var mode int32 // MPOL_DEFAULT is 0
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&mode)), 0, 0, 0, 0, 0)
	switch {
	case errno != 0:
		return fmt.Errorf("cannot read the memory policy: %w", errno)
	case mode != 0:
		return errors.New("the agent was started with a memory policy, which the workers keep")
	}
	return nil
}
