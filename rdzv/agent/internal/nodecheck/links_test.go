package nodecheck

import (
	"context"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdzv/rdzv/check"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	limit = 20 * time.Second
	id    = "ABCDEFGHIJKLMNOP"
)

// shifted is a clock that is wrong.
func shifted(by time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(by) }
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// serve returns the address of an agent, which answers until the test ends.
func serve(t *testing.T, on net.Listener, now func() time.Time) string {
	t.Helper()
	t.Cleanup(Serve(on, id, now))
	return on.Addr().String()
}

// measured is the connection to an agent at an address.
func measured(t *testing.T, within time.Duration, addr, id string) check.Connection {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return Measure(ctx, []check.Target{{ID: id, Addr: addr}})[0]
}

// The difference between two clocks is known with an error of at most half of the round trip.
func TestOffset(t *testing.T) {
	for _, by := range []time.Duration{0, time.Hour, -time.Minute} {
		c := measured(t, limit, serve(t, listen(t), shifted(by)), id)
		const clocks = time.Millisecond // by how much wall clock and monotonic clock may differ
		if wrong := c.Offset - by; c.Error != "" || wrong.Abs() > c.RoundTrip/2+clocks {
			t.Errorf("a clock that is %v ahead: %+v", by, c)
		}
	}
}

// The shortest round trip counts.
func TestRoundTrip(t *testing.T) {
	asked := 0
	c := measured(t, limit, serve(t, listen(t), func() time.Time {
		if asked++; asked != 3 {
			<-time.After(100 * time.Millisecond)
		}
		return time.Now()
	}), id)
	if c.Error != "" || c.RoundTrip >= 100*time.Millisecond || asked != roundTrips {
		t.Errorf("%+v, the clock was read %d times", c, asked)
	}
}

// fails is a listener of which the first Accept fails.
type fails struct {
	net.Listener
	once sync.Once
}

func (l *fails) Accept() (conn net.Conn, err error) {
	l.once.Do(func() { err = syscall.EMFILE })
	if err != nil {
		return nil, err
	}
	return l.Listener.Accept()
}

// An agent that has had no free file descriptor answers when it has one again.
func TestNoDescriptor(t *testing.T) {
	if c := measured(t, limit, serve(t, &fails{Listener: listen(t)}, time.Now), id); c.Error != "" {
		t.Errorf("the agent did not answer: %+v", c)
	}
}

// Nobody else gets an answer, or is taken for the agent.
func TestStrangers(t *testing.T) {
	addr := serve(t, listen(t), time.Now)
	closed := listen(t)
	closed.Close()
	for name, c := range map[string]struct {
		addr, id string
		within   time.Duration
		want     error
	}{
		"another agent": {addr, "QRSTUVWXYZ234567", limit, errStranger},
		"its own words": {program(t, func(conn net.Conn) { io.Copy(conn, conn) }), id,
			300 * time.Millisecond, errSilent},
		"other words": {program(t, func(conn net.Conn) { conn.Write(make([]byte, 1000)) }), id,
			limit, errStranger},
		"no words": {program(t, func(conn net.Conn) { io.Copy(io.Discard, conn) }), id,
			300 * time.Millisecond, errSilent},
		"no connection":  {addr, id, 0, errTimedOut},
		"nobody listens": {closed.Addr().String(), id, limit, syscall.ECONNREFUSED},
	} {
		if got := measured(t, c.within, c.addr, c.id); got.Error != c.want.Error() {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n")); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); len(answer) > 0 {
		t.Errorf("a stranger got %q (%v)", answer, err)
	}
}

// program serves one connection, and returns its address.
func program(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener := listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err == nil {
			serve(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return listener.Addr().String()
}

// The end ends connections that say nothing.
func TestServerCloses(t *testing.T) {
	l := listen(t)
	stop := Serve(l, id, time.Now)
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begin := time.Now()
	stop()
	if took := time.Since(begin); took > MeasureTime/2 {
		t.Errorf("it took %v", took)
	}
}
