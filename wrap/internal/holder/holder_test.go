package holder

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// client is the agent's side of a holder.
type client struct {
	t *testing.T
	*Process
}

func start(t *testing.T, workers ...Worker) client {
	t.Helper()
	p, err := New(Config{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	c := client{t, p}
	t.Cleanup(func() {
		syscall.Close(p.Socket)
		syscall.Wait4(p.PID, nil, 0, nil)
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
	limit := syscall.Timeval{Sec: 20}
	syscall.SetsockoptTimeval(c.Socket, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit)
	b := make([]byte, RecordSize)
	n, err := syscall.Read(c.Socket, b)
	if err != nil || n != RecordSize {
		c.t.Fatalf("read %d bytes from the holder, %v", n, err)
	}
	r := ParseRecord(b)
	if r.Kind != want {
		c.t.Fatalf("the holder sent %+v, want kind %d", r, want)
	}
	return r
}

func sh(script string) Worker {
	return Worker{
		Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")},
		Files: [3]int{Null, 1, 2}, Node: AnyNode, Pipe: Null, Log: Null,
	}
}

func TestHolder(t *testing.T) {
	c := start(t, sh("exit 3"), Worker{Path: "/none", Files: [3]int{Null, Null, Null}, Node: AnyNode,
		Pipe: Null, Log: Null}, sh("(sleep 1000 &) ; exec sleep 1000"))
	for i := range 3 {
		c.order(Record{Kind: Start, Index: i})
	}
	c.next(Started)
	if r := c.next(Refused); syscall.Errno(r.A) != syscall.ENOENT || r.Index != 1 {
		t.Errorf("%+v, want ENOENT", r)
	}
	third := c.next(Started)
	if r := c.next(Ended); syscall.WaitStatus(r.A).ExitStatus() != 3 || r.C != 0 {
		t.Errorf("%+v, want exit status 3", r)
	}
	text, _ := os.ReadFile("/proc/" + itoa(c.PID) + "/smaps_rollup")
	t.Logf("%s", text)
	line, _ := os.ReadFile("/proc/" + itoa(c.PID) + "/cmdline")
	t.Logf("%q", line)
	c.order(Record{Kind: Signal, A: third.A, B: int64(syscall.SIGTERM), C: End})
	if r := c.next(Ended); syscall.WaitStatus(r.A).Signal() != syscall.SIGTERM || r.C != 1 {
		t.Errorf("%+v, want SIGTERM", r)
	}
	c.order(Record{Kind: Kill})
	c.next(Finished)
	time.Sleep(0)
}

func itoa(n int) string { return string(appendInt(nil, n)) }

func appendInt(b []byte, n int) []byte {
	if n > 9 {
		b = appendInt(b, n/10)
	}
	return append(b, byte('0'+n%10))
}
