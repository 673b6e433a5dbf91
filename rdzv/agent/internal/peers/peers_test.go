package peers

import (
	"context"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdzv/rdzv/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limit = 20 * time.Second

// shifted is a clock that is wrong.
func shifted(by time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(by) }
}

func listen(t *testing.T, key Key, now func() time.Time) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1", "agent", key, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// The difference between two clocks is known with an error of at most half of the round trip.
func TestOffset(t *testing.T) {
	key := secret.NewKey()
	for _, c := range []struct{ here, there time.Duration }{
		{0, 0}, {0, time.Hour}, {time.Minute, -time.Minute},
	} {
		s := listen(t, key, shifted(c.there))
		m, err := NewClient(key, shifted(c.here)).Measure(deadline(t, limit), s.Addr(), "agent")
		if err != nil {
			t.Fatal(err)
		}
		const clocks = time.Millisecond // by how much wall clock and monotonic clock may differ
		if wrong := m.Offset - (c.there - c.here); wrong.Abs() > m.RoundTrip/2+clocks {
			t.Errorf("clocks %v and %v: offset %v, round trip %v", c.here, c.there, m.Offset, m.RoundTrip)
		}
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	key := secret.NewKey()
	s := serveOn(&fails{Listener: l}, "agent", key, time.Now)
	defer s.Close()
	if _, err := NewClient(key, time.Now).Measure(deadline(t, limit), s.Addr(), "agent"); err != nil {
		t.Errorf("the agent did not answer: %v", err)
	}
}

// The shortest round trip counts: only the first one is delayed.
func TestRoundTrip(t *testing.T) {
	key := secret.NewKey()
	const delay = time.Hour
	asked := 0
	now := func() time.Time { // before and after each round trip, of which the third is the shortest
		asked++
		took := time.Duration(asked/2) * time.Second
		if asked == 2 {
			took += delay
		}
		if asked == 6 {
			took -= 900 * time.Millisecond
		}
		return time.Unix(0, 0).Add(took)
	}
	m, err := NewClient(key, now).Measure(deadline(t, limit), listen(t, key, time.Now).Addr(), "agent")
	if err != nil || m.RoundTrip != 100*time.Millisecond || asked != 2*roundTrips {
		t.Errorf("%v, %v, the clock was read %d times", m, err, asked)
	}
}

// Nobody else gets an answer, or is believed.
func TestStrangers(t *testing.T) {
	key := secret.NewKey()
	s := listen(t, key, time.Now)
	echo := program(t, func(conn net.Conn) { io.Copy(conn, conn) })
	silent := program(t, func(conn net.Conn) { io.Copy(io.Discard, conn) })
	garbage := program(t, func(conn net.Conn) { conn.Write(make([]byte, 1000)) })
	closed := listen(t, key, time.Now)
	closed.Close()
	for name, c := range map[string]struct {
		addr, id string
		key      Key
		within   time.Duration
		want     error
	}{
		"another key":    {s.Addr(), "agent", secret.NewKey(), limit, errStranger},
		"another agent":  {s.Addr(), "other", key, limit, errStranger},
		"its own words":  {echo, "agent", key, 300 * time.Millisecond, errSilent},
		"other words":    {garbage, "agent", key, limit, errStranger},
		"no words":       {silent, "agent", key, 300 * time.Millisecond, errSilent},
		"no connection":  {s.Addr(), "agent", key, 0, errTimedOut},
		"nobody listens": {closed.Addr(), "agent", key, limit, nil},
	} {
		_, err := NewClient(c.key, time.Now).Measure(deadline(t, c.within), c.addr, c.id)
		if c.want != nil && err != c.want || c.want == nil && err.Error() != "connection refused" {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
}

// program serves connections, and returns its address.
func program(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

// Connections that say nothing occupy all places until Close ends them; garbage ends its own.
func TestServerIsBounded(t *testing.T) {
	key := secret.NewKey()
	s := listen(t, key, time.Now)
	var conns []net.Conn
	for range connections {
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	soon := deadline(t, 200*time.Millisecond)
	if _, err := NewClient(key, time.Now).Measure(soon, s.Addr(), "agent"); err != errSilent {
		t.Errorf("all places are occupied: error %v, want %v", err, errSilent)
	}
	conns[0].Write(make([]byte, requestLen)) // not sealed
	if _, err := NewClient(key, time.Now).Measure(deadline(t, limit), s.Addr(), "agent"); err != nil {
		t.Errorf("one place is free: %v", err)
	}
	begin := time.Now()
	s.Close()
	if took := time.Since(begin); took > limit/2 {
		t.Errorf("Close took %v", took)
	}
}
