package masterport

import (
	"bufio"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"rdzv/internal/procfs"
)

// A worker that holds a socket has inherited it here as descriptor 3.
func TestReached(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		client, server := connectTo(t, l)
		other, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		otherClient, _ := connectTo(t, other)
		pids := []int{
			holder(t, l.(*net.TCPListener), "exec cat"),
			holder(t, client, "exec cat"),
			holder(t, client, "cat <&4 & exec 3<&-; echo; wait"),
			holder(t, client, "(cat <&4 & exec 3<&-; echo; wait) & exec 3<&-; wait"),
			holder(t, server, "exec cat"),
			holder(t, otherClient, "exec cat"),
			holder(t, other.(*net.TCPListener), "exec cat"),
			holder(t, client, "exec 3<&-; exec cat"),
			1 << 30, // no such process
		}
		want := []bool{true, true, true, true, false, false, false, false, false}
		port := l.Addr().(*net.TCPAddr).Port
		if got := Reached(procfs.System, port, pids); !slices.Equal(got, want) {
			t.Errorf("with %s: got %v, want %v", address, got, want)
		}
		lookup := newSocketLookup(procfs.System, port)
		if slices.ContainsFunc(pids, lookup.serves) {
			t.Errorf("with %s: a process serves that only listens or is connected", address)
		}
		if !lookup.serves(os.Getpid()) {
			t.Errorf("with %s: this process listens and is connected to that", address)
		}
	}
}

// A process has not reached rank 0 while it is being connected: a firewall may drop its packets.
func TestConnecting(t *testing.T) {
	l := socket(t)
	port := listenWithoutQueue(t, l)
	to := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	first := socket(t)
	if err := unix.Connect(first, to); err != nil {
		t.Fatal(err)
	}
	client := socket(t)
	if err := unix.SetNonblock(client, true); err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(client, to); err != unix.EINPROGRESS {
		t.Fatalf("connect: %v", err)
	}
	const synSent = 2
	if info, err := unix.GetsockoptTCPInfo(client, unix.SOL_TCP, unix.TCP_INFO); err != nil ||
		info.State != synSent {
		t.Fatalf("got %+v, %v, want a socket that is being connected", info, err)
	}
	found, err := connected(uint16(port))
	if err != nil {
		t.Fatal(err)
	}
	for fd, want := range map[int]bool{first: true, client: false, l: false} {
		var info unix.Stat_t
		if err := unix.Fstat(fd, &info); err != nil {
			t.Fatal(err)
		}
		if found[info.Ino] != want {
			t.Errorf("connected: %t, want %t", found[info.Ino], want)
		}
	}
}

// socket returns a TCP socket.
func socket(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// listenWithoutQueue listens for one connection: the next one is not answered.
func listenWithoutQueue(t *testing.T, fd int) (port int) {
	t.Helper()
	err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(fd, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return address.(*unix.SockaddrInet4).Port
}

// The kernel and /proc give the same sockets.
func TestKernelWithoutDiag(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	connectTo(t, l)
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	listens, err1 := listening(port)
	connects, err2 := connected(port)
	if len(listens) != 1 || len(connects) != 1 || err1 != nil || err2 != nil {
		t.Errorf("got listening %v, %v, connected %v, %v; want one each",
			listens, err1, connects, err2)
	}
	maps.Copy(connects, listens)
	withoutDiag := func(uint16) (inodes, error) { return nil, unix.ENOENT }
	if got := newSocketLookup(procfs.System, int(port)).ask(withoutDiag); !maps.Equal(got, connects) {
		t.Errorf("got %v from /proc, want %v", got, connects)
	}
}

// connectTo returns both ends of a connection.
func connectTo(t *testing.T, l net.Listener) (client, server *net.TCPConn) {
	t.Helper()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return a.(*net.TCPConn), b.(*net.TCPConn)
}

// holder starts a shell with a socket as descriptor 3, and waits until its script prints a line or
// has become cat. Descriptor 4 and standard input end with the test.
func holder(t *testing.T, socket interface{ File() (*os.File, error) }, script string) int {
	t.Helper()
	inherited, err := socket.File()
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := exec.Command("sh", "-c", script)
	c.Stdin, c.ExtraFiles = r, []*os.File{inherited, r}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(); c.Wait() })
	if _, err := w.WriteString("\n"); err != nil { // which cat prints
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return c.Process.Pid
}

// noAccess is a /proc in which processes 9 and 10 are another user's.
type noAccess struct{ fstest.MapFS }

func (n noAccess) Open(name string) (fs.File, error) {
	if name == "9/fd" || name == "10/fd" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return n.MapFS.Open(name)
}

// Each process is looked up in the table of its own network namespace. Process 8 is the parent of
// another user's, and process 10 has ended.
func TestReachedInNamespaces(t *testing.T) {
	link := func(target string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o700}
	}
	table := func(inode string) *fstest.MapFile {
		const line = " 0: 0C004D0A:BFED 0B004D0A:8C11 01 0:0 00:0 0 0 0 "
		return &fstest.MapFile{Data: []byte(line + inode + " 1 0 20 4 30 10 -1\n")}
	}
	proc := noAccess{fstest.MapFS{
		"5/fd/3": link("socket:[100]"), "5/ns/net": link("net:[1]"), "5/net/tcp": table("100"),
		"6/fd/3": link("socket:[100]"), "6/ns/net": link("net:[2]"), "6/net/tcp": table("200"),
		"7/fd/3": link("socket:[200]"), "7/ns/net": link("net:[2]"), // has the table of 6
		"8/fd/3": link("pipe:[1]"), "8/task/8/children": {Data: []byte("9 ")},
		"9/statm": {Data: []byte("1 1 1 1 0 1 0\n")}, "10/statm": {Data: []byte("0 0 0 0 0 0 0\n")},
	}}
	pids, want := []int{5, 6, 7, 8, 9, 10}, []bool{true, false, true, true, true, false}
	l := newSocketLookup(proc, 0x8C11)
	if got := l.all(pids); !slices.Equal(got, want) {
		t.Errorf("of processes %v, got %v, want %v", pids, got, want)
	}
}
