package presence

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestSilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		began := time.Now()
		n, err := LimitSilence(ours, 10*time.Second, 0).Read(make([]byte, 1))
		if took := time.Since(began); n != 0 || err != ErrSilent || took != 10*time.Second {
			t.Errorf("read %d, %v after %v; want ErrSilent after 10s", n, err, took)
		}
	})
}

func TestEachByteRestartsTheCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		limited := LimitSilence(ours, 10*time.Second, 0)
		go func() {
			defer theirs.Close()
			tick := time.NewTicker(9 * time.Second)
			defer tick.Stop()
			for range 5 {
				<-tick.C
				theirs.Write([]byte("x"))
			}
		}()
		got, err := io.ReadAll(limited)
		if string(got) != "xxxxx" || err != nil {
			t.Errorf("read %q, %v; want 5 bytes", got, err)
		}
	})
}

func TestClosedConnectionIsNotSilence(t *testing.T) {
	_, address := serve(t, "1", DefaultTimeout) // closes a connection that does not send HTTP/2
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	conn.Write([]byte("this is not HTTP, and long enough for the server to see that\n"))
	limited := LimitSilence(conn, time.Hour, 0)
	if _, err := io.ReadAll(limited); errors.Is(err, ErrSilent) {
		t.Errorf("connection closed by the peer: %v", err)
	}
	conn.Close()
	if _, err := limited.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("connection closed here: %v, want ErrClosed", err)
	}
}

// The other end of a connection whose peer is silent must not receive its end before linger has
// passed. Until then a Write fails, and a second Close does no harm.
func TestSilentConnectionLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		limited := LimitSilence(ours, 10*time.Second, 4*time.Second)
		if _, err := limited.Read(make([]byte, 1)); err != ErrSilent {
			t.Fatal(err)
		}
		began := time.Now()
		for range 2 {
			if err := limited.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		if _, err := limited.Write([]byte("x")); err == nil {
			t.Error("Write succeeded after Close")
		}
		_, err := theirs.Read(make([]byte, 1))
		if took := time.Since(began); err != io.EOF || took != 4*time.Second {
			t.Errorf("the peer read %v after %v; want EOF after 4s", err, took)
		}
	})
}

// late is a connection with a silent peer, in a process whose timers fire late.
type late struct {
	net.Conn
	deadline time.Time
	by       []time.Duration // delay of each Read; further ones are on time
}

func (l *late) SetReadDeadline(t time.Time) error { l.deadline = t; return nil }

func (l *late) Read([]byte) (int, error) {
	after := time.Until(l.deadline)
	if len(l.by) > 0 {
		after, l.by = after+l.by[0], l.by[1:]
	}
	<-time.After(after)
	return 0, os.ErrDeadlineExceeded
}

func TestSilenceCountsOnlyWhileThisProcessRuns(t *testing.T) {
	const timeout, step, minute = 8 * time.Second, 2 * time.Second, time.Minute
	type delays = []time.Duration
	for name, test := range map[string]struct {
		by   delays
		want time.Duration
	}{
		"never stopped":             {nil, timeout},
		"late twice":                {delays{step / 2, step / 2}, timeout + step},
		"stopped in the first step": {delays{minute}, step + minute + timeout},
		"stopped in the last step":  {delays{0, 0, 0, minute}, timeout + minute + timeout},
		"stopped repeatedly": {delays{minute, 0, minute, minute},
			4*step + 3*minute + timeout},
		"stopped for the limit":     {delays{0, timeout}, 2*step + timeout + timeout},
		"step as long as the limit": {delays{0, timeout - step}, timeout + timeout - step},
		"late in each step": {delays{2 * step, 2 * step, 2 * step, 2 * step},
			timeout + 8*step},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := LimitSilence(&late{by: test.by}, timeout, 0).Read(nil)
				if took := time.Since(began); err != ErrSilent || took != test.want {
					t.Errorf("%v after %v; want ErrSilent after %v", err, took, test.want)
				}
			})
		})
	}
}
