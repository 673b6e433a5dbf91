package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/internal/proctest"
)

func TestAddress(t *testing.T) {
	id := Identity{Job: "1", Node: "a", Words: []string{"exec"}, Env: []string{"RDZV_NODES=2", "HOME=/"}}
	first := Address(id)
	if !strings.HasPrefix(first, prefix) || len(first) != len(prefix)+32 {
		t.Fatalf("address %q", first)
	}
	for name, c := range map[string]struct {
		id   Identity
		same bool
	}{
		"same":           {id, true},
		"other variable": {Identity{"1", "a", id.Words, []string{"HOME=/x", "RDZV_NODES=2"}}, true},
		"token":          {Identity{"1", "a", id.Words, append([]string{"RDZV_TOKEN=x"}, id.Env...)}, true},
		"setting":        {Identity{"1", "a", id.Words, []string{"RDZV_NODES=3"}}, false},
		"job":            {Identity{"2", "a", id.Words, id.Env}, false},
		"node":           {Identity{"1", "b", id.Words, id.Env}, false},
		"words":          {Identity{"1", "a", []string{"ex", "ec"}, id.Env}, false},
		"no words":       {Identity{"1", "a", nil, append([]string{"exec"}, id.Env...)}, false},
	} {
		if got := Address(c.id); (got == first) != c.same {
			t.Errorf("%s: address %q, the first is %q", name, got, first)
		}
	}
}

// TestAddressOfOthers: it is the same in another process, and different in other namespaces.
func TestAddressOfOthers(t *testing.T) {
	want := Address(Identity{Job: "x"})
	of := func(command ...string) string {
		cmd := exec.Command(command[0], append(command[1:], "/proc/self/exe")...)
		self, _ := os.Executable()
		cmd.Args[len(cmd.Args)-1] = self
		cmd.Env = append(os.Environ(), roleEnv+"="+printsAddress)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Skipf("only root can create namespaces here: %q: %v: %s", command, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if got := of("env"); got != want {
		t.Errorf("address %q in another process, %q in this one", got, want)
	}
	for _, space := range []string{"--net", "--mount", "--user"} {
		if got := of("unshare", space); got == want {
			t.Errorf("address %q is the same in another namespace (%s)", got, space)
		}
	}
}

var printsAddress = role("address", func() { fmt.Println(Address(Identity{Job: "x"})) })

// TestElection: of several tasks that come without a first one, exactly one is the agent.
func TestElection(t *testing.T) {
	nothingLeft(t)
	const n = 5
	var list []*process
	for range n {
		list = append(list, start(t, anyTask, address(t)))
	}
	agents := 0
	for _, p := range list {
		if code := p.code(); code != 0 && code != 5 {
			t.Errorf("a task exits with %d: %s", code, p.stdout)
		}
		if strings.Contains(p.stdout.String(), "agent of 4") {
			agents++
		}
	}
	if agents != 1 {
		t.Errorf("%d tasks are the agent of the others", agents)
	}
}

// anyTask is an agent that makes the others exit with 5, or a runner.
var anyTask = role("any", func() {
	l, conn, err := Meet(os.Getenv(addrEnv), false)
	switch {
	case err != nil:
		fmt.Println(err)
		syscall.Exit(1)
	case conn != nil:
		code, _, err := conn.Serve(Hello{}, [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
		fmt.Println("runner", err)
		syscall.Exit(code)
	}
	l.wait = limit / 2
	tasks := l.Tasks(context.Background(), 4)
	fmt.Println("agent of", len(tasks))
	for _, t := range tasks {
		t.Exit(5, 0)
		<-t.Lost()
		t.Close()
	}
})

// TestClosedAddress: when all tasks have come the same address can be used again, even before they
// have ended.
func TestClosedAddress(t *testing.T) {
	agentOf(t, 2)
	l, _, err := Meet(address(t), true)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// TestLateTask: the agent does not wait for a task for ever, which is its own agent then.
func TestLateTask(t *testing.T) {
	nothingLeft(t)
	l, _, err := Meet(address(t), true)
	if err != nil {
		t.Fatal(err)
	}
	if l.wait != 1500*time.Millisecond {
		t.Errorf("it waits %v", l.wait)
	}
	l.wait = limit / 4 // for a busy machine
	start(t, aTask, address(t))
	tasks := l.Tasks(t.Context(), 2)
	if len(tasks) != 1 {
		t.Fatalf("%d tasks", len(tasks))
	}
	defer tasks[0].Close()
	late, conn, err := Meet(address(t), false)
	if err != nil || conn != nil {
		t.Fatalf("Meet = %v, %v", conn, err)
	}
	late.Close()
}

// TestTasksCancelled: Tasks ends with its context.
func TestTasksCancelled(t *testing.T) {
	l, _, err := Meet(address(t), true)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if tasks := l.Tasks(ctx, 2); len(tasks) != 0 {
		t.Errorf("%d tasks", len(tasks))
	}
}

// TestNotAccepted: a task that has connected, and is not accepted, is its own agent.
func TestNotAccepted(t *testing.T) {
	l, _, err := Meet(address(t), true)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, l.Close)
	if l, c, err := Meet(address(t), false); err == nil || !strings.Contains(err.Error(), "all its tasks") {
		t.Errorf("Meet = %v, %v, %v", l, c, err)
	}
}

// TestFirstIsLate: the first task is a runner if another one has bound the address.
func TestFirstIsLate(t *testing.T) {
	l, _, err := Meet(address(t), false)
	if err != nil {
		t.Fatal(err)
	}
	tasks := make(chan []*Task, 1)
	go func() { tasks <- l.Tasks(t.Context(), 1) }()
	_, conn, err := Meet(address(t), true)
	if err != nil || conn.Agent() != os.Getpid() {
		t.Fatalf("Meet = %+v, %v", conn, err)
	}
	conn.socket.Close()
	if list := await(t, "Tasks", tasks); len(list) != 0 {
		t.Errorf("%d tasks, though none has introduced itself", len(list))
	}
}

// TestSquatter: an address that another user has bound, and a task of another user.
func TestSquatter(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start processes of another user")
	}
	nothingLeft(t)
	other := func(c *exec.Cmd) {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	squatter := start(t, aSquatter, address(t), other)
	squatter.stdout.want("bound")
	for _, first := range []bool{true, false} {
		began := time.Now()
		l, c, err := Meet(address(t), first)
		if err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
			t.Fatalf("Meet = %v, %v, %v", l, c, err)
		}
		if took := time.Since(began); took > limit/4 {
			t.Errorf("Meet took %v", took)
		}
	}
	squatter.signal(syscall.SIGKILL)
	<-squatter.ended
	l, _, err := Meet(address(t), true)
	if err != nil {
		t.Fatal(err)
	}
	stranger := start(t, aTask, address(t), other)
	if tasks := l.Tasks(t.Context(), 1); len(tasks) != 0 {
		t.Errorf("%d tasks of another user", len(tasks))
	}
	if code := stranger.code(); code != 99 {
		t.Errorf("the task of another user exits with %d", code)
	}
}

// aSquatter binds an address and accepts nobody.
var aSquatter = role("squatter", func() {
	if _, err := bind(os.Getenv(addrEnv)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("bound")
	for {
		_ = syscall.Pause()
	}
})

// TestOverflowUser: in a user namespace in which this user has the number of all those without one,
// tasks share no agent.
func TestOverflowUser(t *testing.T) {
	if !proctest.Inside(t, "--user", "--map-user=65534") {
		return
	}
	l, c, err := Meet(address(t), true)
	const want = "cannot share an agent with other tasks: " +
		"user 65534 is the overflow user of this user namespace"
	if l != nil || c != nil || err == nil || err.Error() != want {
		t.Errorf("Meet = %v, %v, %v, want %s", l, c, err, want)
	}
}

func TestNoAddress(t *testing.T) {
	if l, c, err := Meet("", true); err == nil {
		t.Errorf("Meet = %v, %v", l, c)
	}
}

// TestMuteTask: a task that has been accepted and says something else is not one.
func TestMuteTask(t *testing.T) {
	l, _, err := Meet(address(t), true)
	if err != nil {
		t.Fatal(err)
	}
	tasks := make(chan []*Task, 1)
	go func() { tasks <- l.Tasks(t.Context(), 1) }()
	_, conn, err := Meet(address(t), false)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.socket.Close()
	if err := conn.socket.Send(hello, helloMessage{}, os.Stdout); err != nil { // without all streams
		t.Fatal(err)
	}
	if list := await(t, "Tasks", tasks); len(list) != 0 {
		t.Errorf("%d tasks", len(list))
	}
	if _, err := conn.socket.Receive(); err == nil {
		t.Error("the connection goes on")
	}
}

func TestBindTwice(t *testing.T) {
	l, err := bind(address(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := bind(address(t)); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("bind: %v", err)
	}
}

func TestSettings(t *testing.T) {
	env := []string{"B=1", "RDZV_Z=1", "RDZV_TOKEN=secret", "RDZV_A=2", "RDZV_STORE_USER=a:b", "RDZVX=1"}
	if got, want := settings(env), []string{"RDZV_A=2", "RDZV_Z=1"}; !slices.Equal(got, want) {
		t.Errorf("settings %q, want %q", got, want)
	}
}
