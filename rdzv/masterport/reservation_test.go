package masterport

import (
	"errors"
	"io/fs"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rdzv/internal/proctest"
)

// torchStore does with MASTER_PORT what torch's store does.
const torchStore = `
import socket, sys
s = socket.socket(socket.AF_INET6)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.bind(("::", int(sys.argv[1])))
s.listen(2048)
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10)
s.accept()[0].close()
print("served")
`

func TestWorkerListensOnHeldPort(t *testing.T) {
	families := map[string]int{"dual stack": unix.AF_INET6, "IPv4 only": unix.AF_INET}
	for name, family := range families {
		t.Run(name, func(t *testing.T) {
			h, err := open(family, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			out, err := serve(t, h.Port())
			if err != nil || string(out) != "served\n" {
				t.Errorf("a socket with SO_REUSEADDR on held port %d: %v\n%s", h.Port(), err, out)
			}
		})
	}
}

func TestHeldPortsAreDistinct(t *testing.T) {
	ports := map[int]bool{}
	for range 100 {
		h := hold(t, 0)
		if ports[h.Port()] {
			t.Errorf("port %d is held twice", h.Port())
		}
		ports[h.Port()] = true
	}
}

func TestHeldPortIsNotAssigned(t *testing.T) {
	h := hold(t, 0)
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"} {
		for range 500 {
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			if l.Addr().(*net.TCPAddr).Port == h.Port() {
				t.Fatalf("the kernel assigned held port %d to %s", h.Port(), address)
			}
			l.Close()
		}
	}
}

func TestHoldGivenPort(t *testing.T) {
	free := hold(t, 0)
	free.Close()
	if h := hold(t, free.Port()); h.Port() != free.Port() {
		t.Errorf("requested port %d, got %d", free.Port(), h.Port())
	}
}

// A job that is run again at once finds its port free: connections of the earlier run that are in
// TIME_WAIT do not count.
func TestConnectionsInTimeWaitDoNotUseThePort(t *testing.T) {
	h := hold(t, 0)
	out, err := serve(t, h.Port())
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h.Close()
	hold(t, h.Port())
}

func TestPortInUse(t *testing.T) {
	held := hold(t, 0)
	loopback := listen(t, "127.0.0.1:0", nil)
	sharing := listen(t, "[::]:0", func(fd uintptr) {
		unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	for name, port := range map[string]int{
		"another Reservation": held.Port(), "a server on loopback": loopback,
		"a server with SO_REUSEPORT": sharing,
	} {
		h, err := Hold(port)
		if err == nil {
			h.Close()
		}
		if !errors.Is(err, unix.EADDRINUSE) || !strings.Contains(err.Error(), strconv.Itoa(port)) {
			t.Errorf("port of %s: %v", name, err)
		}
	}
	for _, port := range []int{-1, 65536} {
		if _, err := Hold(port); err == nil || !strings.Contains(err.Error(), strconv.Itoa(port)) {
			t.Errorf("port %d: %v", port, err)
		}
	}
}

// The ports above a chosen port are free, and no job has those of another. A port that is above
// another job's cannot be given either.
func TestPortsAbove(t *testing.T) {
	for range 200 { // in use
		listen(t, "127.0.0.1:0", nil)
	}
	owner := map[int]int{}
	for range 100 {
		first := hold(t, 0).Port()
		for port := first; port <= first+SparePorts; port++ {
			if other, taken := owner[port]; taken {
				t.Errorf("port %d is above %d and above %d", port, first, other)
			}
			owner[port] = first
			if l, err := bound(unix.AF_INET6, port); port != first && err != nil {
				t.Errorf("port %d above %d: %v", port, first, err)
			} else if err == nil {
				l.Close()
			}
		}
	}
	first := hold(t, 0).Port()
	if h, err := Hold(first + SparePorts); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("port %d above the chosen %d: %v, %v", first+SparePorts, first, h, err)
	}
}

// A given port is reserved whatever the ports above it are used for.
func TestPortsAboveGivenPort(t *testing.T) {
	for {
		used := listen(t, "127.0.0.1:0", nil)
		h, err := Hold(used - 1)
		if errors.Is(err, unix.EADDRINUSE) {
			continue // by another program
		}
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if h.claimSparePorts(unix.AF_INET6) {
			t.Errorf("the port above %d is free, want in use", used-1)
		}
		return
	}
}

func TestHeldPortIsNotInherited(t *testing.T) {
	h := hold(t, 0)
	for _, f := range append(h.claims, h.held) {
		flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("%s: flags %#x, %v; want close-on-exec", f.Name(), flags, err)
		}
	}
	h.Close()
	if err := h.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}

// serve runs torchStore on the port and returns its output.
func serve(t *testing.T, port int) ([]byte, error) {
	t.Helper()
	proctest.NeedProgram(t, "/usr/bin/python3")
	args := []string{"-c", torchStore, strconv.Itoa(port)}
	return exec.CommandContext(t.Context(), "/usr/bin/python3", args...).CombinedOutput()
}

func hold(t *testing.T, port int) *Reservation {
	t.Helper()
	h, err := Hold(port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// listen returns the port of a server that listens until the test ends.
func listen(t *testing.T, address string, option func(fd uintptr)) int {
	t.Helper()
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		if option == nil {
			return nil
		}
		return c.Control(option)
	}}
	l, err := config.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// Several processes of a user can listen on a port that is held alone, as NCCL's RAS service does in
// each of them.
func TestSharedPort(t *testing.T) {
	h, err := HoldOne()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(h.Port()))
	for range 2 {
		listen(t, address, func(fd uintptr) {
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	for range 500 {
		other, err := HoldOne()
		if err != nil {
			t.Fatal(err)
		}
		if other.Port() == h.Port() {
			t.Fatal("two jobs have the same port")
		}
		other.Close()
	}
}
