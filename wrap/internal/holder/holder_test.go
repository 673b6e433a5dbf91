package holder

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// client is the agent's side of a holder.
type client struct {
	t *testing.T
	*Process
}

func start(t *testing.T, workers ...WorkerSpec) client {
	t.Helper()
	p, err := New(Config{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	c := client{t, p}
	t.Cleanup(func() {
		syscall.Close(p.Socket)
		for err := syscall.EINTR; err == syscall.EINTR; {
			_, e := syscall.Wait4(p.PID, nil, 0, nil)
			err, _ = e.(syscall.Errno)
		}
		p.Close()
	})
	return c
}

func (c client) order(r Record) {
	c.t.Helper()
	if _, err := syscall.Write(c.Socket, r.Bytes()); err != nil {
		c.t.Fatal(err)
	}
}

func (c client) next(want Kind) Record {
	c.t.Helper()
	r := c.read()
	if r.Kind != want {
		c.t.Fatalf("the holder sent %+v, want kind %d", r, want)
	}
	return r
}

// read returns the next record, except for the SIGCONT that a test sends.
func (c client) read() Record {
	c.t.Helper()
	limit := syscall.Timeval{Sec: 20}
	syscall.SetsockoptTimeval(c.Socket, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit)
	b := make([]byte, RecordSize)
	n, err := syscall.Read(c.Socket, b)
	for err == syscall.EINTR { // of the Go runtime; with a limit the kernel does not restart it
		n, err = syscall.Read(c.Socket, b)
	}
	if err != nil || n != RecordSize {
		c.t.Fatalf("read %d bytes from the holder, %v", n, err)
	}
	if r := ParseRecord(b); r.Kind != Received {
		return r
	}
	return c.read()
}

func sh(script string) WorkerSpec {
	return WorkerSpec{
		Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")},
		Files: [3]int{Null, 1, 2}, Node: AnyNode, Pipe: Null, Log: Null,
	}
}

func TestHolder(t *testing.T) {
	c := start(t, sh("exit 3"), WorkerSpec{Path: "/none", Files: [3]int{Null, Null, Null},
		Node: AnyNode, Pipe: Null, Log: Null}, sh("(sleep 1000 &) ; exec sleep 1000"))
	c.order(Record{Kind: Start, Index: 1})
	if r := c.next(Refused); syscall.Errno(r.A) != syscall.ENOENT || r.Index != 1 {
		t.Errorf("%+v, want ENOENT", r)
	}
	c.order(Record{Kind: Start, Index: 2})
	third := c.next(Started)
	c.order(Record{Kind: Start, Index: 0})
	c.next(Started)
	if r := c.next(Ended); syscall.WaitStatus(r.A).ExitStatus() != 3 || r.C != 0 {
		t.Errorf("%+v, want exit status 3", r)
	}
	line, err := os.ReadFile("/proc/" + strconv.Itoa(c.PID) + "/cmdline")
	if name := strings.Trim(string(line), "\x00"); err != nil || !strings.HasPrefix(name, Name) {
		t.Errorf("the arguments of the holder are %q, %v, want %q", name, err, Name)
	}
	c.order(Record{Kind: Signal, A: third.A, B: int64(syscall.SIGTERM), C: End})
	if r := c.next(Ended); syscall.WaitStatus(r.A).Signal() != syscall.SIGTERM || r.C != 1 {
		t.Errorf("%+v, want SIGTERM", r)
	}
	c.order(Record{Kind: Kill})
	c.next(Finished)
}

// A worker that fails before it is signalled has not been stopped. The order may be read before its
// end, because orders come first.
func TestSignalAfterEnd(t *testing.T) {
	stdin, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	worker := sh("read line; exit 3")
	worker.Files[0] = int(stdin.Fd())
	c := start(t, worker)
	c.order(Record{Kind: Start})
	started := c.next(Started)
	stdin.Close()
	c.signal(syscall.SIGSTOP)
	c.waitForState(c.PID, "T")
	input.Close()
	c.waitForState(int(started.A), "Z")
	c.order(Record{Kind: Signal, A: started.A, B: int64(syscall.SIGTERM), C: End})
	c.signal(syscall.SIGCONT)
	if r := c.next(Ended); syscall.WaitStatus(r.A).ExitStatus() != 3 || r.C != 0 {
		t.Errorf("%+v, want exit status 3 and no signal", r)
	}
	c.order(Record{Kind: Kill})
	c.next(Finished)
}

func (c client) signal(s syscall.Signal) {
	c.t.Helper()
	if err := syscall.Kill(c.PID, s); err != nil {
		c.t.Fatal(err)
	}
}

// waitForState waits until a process has this state in /proc/PID/stat, or does not exist any more.
func (c client) waitForState(pid int, state string) {
	c.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(statFile(pid))
		_, after, _ := strings.Cut(string(stat), ") ")
		if os.IsNotExist(err) || strings.HasPrefix(after, state) {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("/proc/%d/stat is %q, %v, want state %s", pid, stat, err, state)
		}
	}
}

// If there is no room for a report the end of the lease must not replace the one that waits.
func TestLeaseEndsWhileAgentReadsNothing(t *testing.T) {
	const refused = 400 // more than there is room for
	workers := []WorkerSpec{sh("exec sleep 1000")}
	for range refused {
		none := sh("")
		none.Path = "/none"
		workers = append(workers, none)
	}
	c := start(t, workers...)
	c.order(Record{Kind: Start})
	first := c.next(Started)
	c.Shared.LeaseGrace = int64(time.Hour)
	c.Shared.LeaseUntil = clock(clockBoottime) + 2*second
	for i := range refused {
		c.order(Record{Kind: Start, Index: 1 + i})
	}
	c.waitForState(int(first.A), "Z")
	got := map[Kind]int{}
	for range refused + 2 {
		got[c.read().Kind]++
	}
	if got[Refused] != refused || got[LeaseOver] != 1 || got[Ended] != 1 {
		t.Errorf("records by kind: %v", got)
	}
	c.order(Record{Kind: Kill})
	c.next(Finished)
}
