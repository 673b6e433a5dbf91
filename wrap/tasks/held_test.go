package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdzv/wrap"
)

// peerEnv is the address to which a connected agent connects. generationsEnv are those of its own
// tree, 0 without one; that of its runner has the others of 100.
const (
	peerEnv        = "TASKS_TEST_PEER"
	generationsEnv = "TASKS_TEST_GENERATIONS"
)

// manyGenerations is a worker with $1 descendants that are each the child of the one before: to kill
// them takes a while.
const manyGenerations = `next() {
	if [ $1 -gt 0 ]; then (next $(($1 - 1)); :); else echo ready; sleep 1000; fi
}
trap "" TERM
next $0`

// connected is the agent of one runner. Their trees hold its connection, from which it reads nothing.
var connected = role("connected", func() {
	l, _, err := Meet(os.Getenv(addrEnv), true)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("bound")
	l.wait = limit
	task := l.Tasks(context.Background(), 1)[0]
	conn, err := net.Dial("tcp", os.Getenv(peerEnv))
	if err != nil {
		fmt.Println(err)
		return
	}
	file, _ := conn.(*net.TCPConn).File()
	held, err := wrap.HoldSocket(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	var generations int
	fmt.Sscan(os.Getenv(generationsEnv), &generations)
	tree := func(n int) wrap.Tree {
		return wrap.Tree{Held: held, Workers: []wrap.Worker{{
			Path: "/bin/sh", Args: []string{"sh", "-c", manyGenerations, fmt.Sprint(n)},
			Env: os.Environ(), Stdout: os.Stdout,
		}}}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	if generations > 0 {
		running.Go(func() { wrap.Run(ctx, tree(generations)) })
	}
	_, err = runIn(task, ctx, tree(100-generations))
	fmt.Println("returned", err)
	cancel()
	running.Wait()
	held.Close()
	conn.Write([]byte("still connected"))
	conn.(*net.TCPConn).CloseWrite()
	task.Exit(0, 0)
	<-task.Lost()
	task.Close()
})

// startConnected starts a connected agent and its runner. conn is the other end of the connection.
func startConnected(t *testing.T, generations int) (agent, runner *process, conn net.Conn) {
	t.Helper()
	nothingLeft(t)
	peer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	agent = start(t, connected, address(t), func(c *exec.Cmd) {
		c.Env = append(c.Env, peerEnv+"="+peer.Addr().String(),
			generationsEnv+"="+fmt.Sprint(generations))
	})
	agent.stdout.want("bound")
	runner = start(t, aTask, address(t))
	if conn, err = peer.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write([]byte("which nobody reads")); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(limit))
	if generations > 0 {
		agent.stdout.want("ready")
	}
	runner.stdout.want("ready")
	return agent, runner, conn
}

// TestHeldConnection: when an agent has been killed the other end of its connection reads end of
// file when nothing of the trees of all tasks is left, whichever takes longer to end.
func TestHeldConnection(t *testing.T) {
	for _, generations := range []int{0, 1, 99} {
		t.Run(fmt.Sprintf("%d descendants of the agent", generations), func(t *testing.T) {
			agent, runner, conn := startConnected(t, generations)
			if n := len(tree(t, agent, runner)); n < 100 {
				t.Errorf("%d processes run", n)
			}
			agent.signal(syscall.SIGKILL)
			n, err := conn.Read(make([]byte, 1))
			if left := tree(t, agent, runner); len(left) > 0 {
				t.Errorf("%d processes run at the end of the connection", len(left))
			}
			if n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("read %d bytes, %v, want end of file", n, err)
			}
		})
	}
}

// TestHeldConnectionGoesOn: the end of a task does not end the connection of its agent.
func TestHeldConnectionGoesOn(t *testing.T) {
	agent, runner, conn := startConnected(t, 50)
	runner.signal(syscall.SIGKILL)
	agent.stdout.want("returned " + wrap.ErrRunner.Error())
	const want = "still connected"
	if text, err := io.ReadAll(conn); string(text) != want || err != nil {
		t.Errorf("read %q, %v, want %q", text, err, want)
	}
}

// TestLostAtOnce: an agent learns that a task has died as soon as nothing of its tree is left, also
// if the agent, which lives, has a connection that the runner of the task holds.
func TestLostAtOnce(t *testing.T) {
	const heldWait = time.Second // of a runner whose agent has died
	soon := false
	for i := 0; i < 5 && !soon; i++ { // this machine may be busy
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			agent, task, _ := startConnected(t, 99)
			killed := time.Now()
			task.signal(syscall.SIGKILL)
			agent.stdout.want("returned " + wrap.ErrRunner.Error())
			soon = time.Since(killed) < heldWait
		})
	}
	if !soon {
		t.Errorf("the agent has always learned of the loss later than after %v", heldWait)
	}
}
