package portuser

import (
	"fmt"
	"net"
	"os"
	"testing"

	"rdzv/internal/procfs"
)

func TestOf(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	self, err := procfs.Read(procfs.System, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("pid %d (%s)", os.Getpid(), self.Name)
	if got := Of(procfs.System, port); got != want {
		t.Errorf("port %d is used by %q, want %q", port, got, want)
	}
	l.Close()
	if got := Of(procfs.System, port); got != "" {
		t.Errorf("a closed port is used by %q", got)
	}
}
