package wrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"rdzv/internal/procfs"
	"rdzv/wrap/internal/parent"
)

// manyGenerations is a worker with descendants that are each the child of the one before: to kill
// them takes a while.
const manyGenerations = `next() {
	if [ $1 -gt 0 ]; then (next $(($1 - 1)); :); else echo ready; sleep 1000; fi
}
trap "" TERM
next 100`

// connected is an agent that holds a connection to the address argEnv. It reads nothing from it.
var connected = role("connected", func() {
	conn, err := net.Dial("tcp", os.Getenv(argEnv))
	if err != nil {
		fmt.Println(err)
		return
	}
	file, _ := conn.(*net.TCPConn).File()
	held, err := HoldSocket(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = Run(context.Background(), Tree{
		Workers: []Worker{{
			Path: "/bin/sh", Args: []string{"sh", "-c", manyGenerations}, Env: os.Environ(),
			Stdout: os.Stdout,
		}},
		Held: held,
	})
	held.Close()
	fmt.Println("returned", err)
	conn.Write([]byte("still connected"))
	conn.(*net.TCPConn).CloseWrite()
	pause()
})

// startConnected starts an agent that holds a connection, whose other end it returns.
func startConnected(t *testing.T) (*exec.Cmd, lineReader, net.Conn) {
	t.Helper()
	nothingLeft(t)
	peer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	cmd, out := startAgent(t, 1, func(c *exec.Cmd) {
		c.Env = append(c.Env, roleEnv+"="+connected, argEnv+"="+peer.Addr().String())
	})
	conn, err := peer.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write([]byte("which nobody reads")); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	return cmd, out, conn
}

// TestHeldConnection: when an agent has been killed the other end of its connection reads end of
// file when nothing of the tree is left.
func TestHeldConnection(t *testing.T) {
	cmd, _, conn := startConnected(t)
	if n := len(marked(marker(t))); n < 100 {
		t.Errorf("%d processes run", n)
	}
	for _, p := range marked(marker(t)) {
		if s, err := procfs.Sockets(procfs.System, p.PID); p.PID != cmd.Process.Pid && p.Name != parent.Name && len(s) > 0 {
			t.Errorf("process %d has the sockets %v, %v", p.PID, s, err)
		}
	}
	syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
	n, err := conn.Read(make([]byte, 1))
	if left := marked(marker(t)); len(left) > 0 {
		t.Errorf("%d processes run at the end of the connection", len(left))
	}
	if n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d bytes, %v, want end of file", n, err)
	}
}

// TestHeldConnectionGoesOn: the end of a tree does not end the connection of its agent.
func TestHeldConnectionGoesOn(t *testing.T) {
	_, out, conn := startConnected(t)
	eventually(t, "the last descendant is killed", func() bool {
		list := marked(marker(t))
		i := slices.IndexFunc(list, func(p Process) bool { return p.Name == "sleep" })
		return i >= 0 && syscall.Kill(list[i].PID, syscall.SIGKILL) == nil
	})
	out.want("returned <nil>")
	const want = "still connected"
	if text, err := io.ReadAll(conn); string(text) != want || err != nil {
		t.Errorf("read %q, %v, want %q", text, err, want)
	}
}
