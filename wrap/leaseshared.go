package wrap

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"rdzv/wrap/internal/shared"
)

// The terms of a lease can be in memory that several processes share: then the owner of the lease
// renews it without waking the others, and it ends for them also if the owner is stopped.

// Share returns a file for OpenLease in other processes. It belongs to the lease.
func (l *Lease) Share() (*os.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		return l.file, nil
	}
	file, err := shared.New("lease", int(unsafe.Sizeof(terms{})))
	if err != nil {
		return nil, fmt.Errorf("cannot share a lease: %w", err)
	}
	if err := l.mapTerms(file, syscall.PROT_READ|syscall.PROT_WRITE); err != nil {
		file.Close()
		return nil, err
	}
	*l.mapped, l.file = l.own, file
	return file, nil
}

// OpenLease returns the lease that another process owns, for Tree.Lease. Only Changed may be called
// then. The file can be closed.
func OpenLease(file *os.File) (*Lease, error) {
	l := &Lease{others: true}
	if err := l.mapTerms(file, syscall.PROT_READ); err != nil {
		return nil, err
	}
	return l, nil
}

// Changed makes Run see at once what the owner has changed: see Changes.
func (l *Lease) Changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell(false)
}

// mapTerms maps the memory, as long as l is in use.
func (l *Lease) mapTerms(file *os.File, access int) error {
	memory, err := shared.Map(file, int(unsafe.Sizeof(terms{})), access)
	if err != nil {
		return fmt.Errorf("cannot share a lease: %w", err)
	}
	l.mapped = (*terms)(unsafe.Pointer(&memory[0]))
	runtime.AddCleanup(l, shared.Unmap, memory)
	return nil
}

// memory is where until is if processes share it, else nil.
func (l *Lease) memory() *int64 {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mapped == nil {
		return nil
	}
	return &l.mapped.until
}
