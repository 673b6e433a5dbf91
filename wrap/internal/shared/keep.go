//go:build execholder

package shared

import (
	"maps"
	"slices"
	"sync"
	"syscall"
	"unsafe"
)

// Kept is memory of Map that a program can map that this process executes.
type Kept struct {
	Address, Size uintptr
	FD            int // it is closed when the memory is unmapped
}

var (
	mu   sync.Mutex
	kept = map[uintptr]Kept{}
)

// Use calls f with all that are mapped, and are not unmapped meanwhile.
func Use(f func([]Kept)) {
	mu.Lock()
	defer mu.Unlock()
	f(slices.Collect(maps.Values(kept)))
}

func keep(memory []byte, fd uintptr) {
	own, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_DUPFD_CLOEXEC, 3)
	if errno != 0 {
		return // a holder that needs it cannot start
	}
	mu.Lock()
	defer mu.Unlock()
	address := uintptr(unsafe.Pointer(&memory[0]))
	kept[address] = Kept{address, uintptr(len(memory)), int(own)}
}

func drop(memory []byte) {
	mu.Lock()
	defer mu.Unlock()
	address := uintptr(unsafe.Pointer(&memory[0]))
	if k, ok := kept[address]; ok {
		_ = syscall.Close(k.FD)
		delete(kept, address)
	}
}
