package shared

import (
	"os"
	"syscall"
	"testing"
)

func TestShared(t *testing.T) {
	f, err := New("test", 8)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, errA := Map(f, 8, syscall.PROT_READ|syscall.PROT_WRITE)
	b, errB := Map(f, 8, syscall.PROT_READ)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if a[7] = 1; b[7] != 1 {
		t.Error("the memory is not shared")
	}
	Unmap(a)
	Unmap(b)
	if _, err := Map(f, 9, syscall.PROT_READ); err == nil {
		t.Error("a file that is too short is mapped")
	}
	r, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Map(r, 8, syscall.PROT_READ); err == nil {
		t.Error("a pipe is mapped")
	}
}
