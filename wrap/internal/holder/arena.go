package holder

import (
	"os"
	"unsafe"
)

// arena is memory outside of Go's heap, of which parts are taken.
type arena struct {
	memory []byte
	next   uintptr
}

func newArena(size uintptr) (a arena, err error) {
	page := uintptr(os.Getpagesize())
	a.memory, err = mapPrivate(int((size + page) &^ (page - 1)))
	return a, err
}

func (a *arena) release() {
	if a.memory != nil {
		unmap(a.memory)
	}
}

// span is where the memory is.
func (a *arena) span() span {
	return span{uintptr(unsafe.Pointer(&a.memory[0])), uintptr(len(a.memory))}
}

// rest takes what is left, from the begin of a page on. It can still be taken.
func (a *arena) rest() span {
	page := uintptr(os.Getpagesize())
	a.next = (a.next + page - 1) &^ (page - 1)
	all := a.span()
	return span{all.at + a.next, all.size - a.next}
}

// take takes size bytes.
func (a *arena) take(size uintptr) unsafe.Pointer {
	at := a.next
	if a.next += (size + 7) &^ 7; a.next > uintptr(len(a.memory)) {
		panic("holder: the memory is too small")
	}
	return unsafe.Pointer(&a.memory[at])
}

// text returns the address of a copy of s that ends with 0.
func (a *arena) text(s string) uintptr {
	to := a.take(uintptr(len(s)) + 1)
	copy(unsafe.Slice((*byte)(to), len(s)), s)
	return uintptr(to)
}

// texts returns the address of a list of the addresses of copies, which ends with 0.
func (a *arena) texts(list []string) uintptr {
	addresses := make([]uintptr, 0, len(list)+1)
	for _, s := range list {
		addresses = append(addresses, a.text(s))
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(copyTo(a, append(addresses, 0)))))
}

// copyTo returns a copy of list, which has no pointers.
func copyTo[T any](a *arena, list []T) []T {
	to := takeList[T](a, len(list))
	copy(to, list)
	return to
}

// takeList takes a list of zeros.
func takeList[T any](a *arena, length int) []T {
	var one T
	return unsafe.Slice((*T)(a.take(uintptr(length)*unsafe.Sizeof(one))), length)
}
