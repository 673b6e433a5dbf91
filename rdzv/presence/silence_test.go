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

func TestASilentPeerIsGivenUpAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		began := time.Now()
		n, err := LimitSilence(ours, 10*time.Second).Read(make([]byte, 1))
		if took := time.Since(began); n != 0 || err != ErrSilent || took != 10*time.Second {
			t.Errorf("read %d, %v after %v; want ErrSilent after 10s", n, err, took)
		}
	})
}

func TestEachByteBeginsTheSilenceAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		limited := LimitSilence(ours, 10*time.Second)
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
			t.Errorf("read %q, %v", got, err)
		}
	})
}

func TestAClosedConnectionIsNoSilence(t *testing.T) {
	_, address := serve(t, "1", DefaultTimeout) // which hangs up on who sends it no HTTP
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	conn.Write([]byte("this is no HTTP, nor anything that looks like it at all\n"))
	limited := LimitSilence(conn, time.Hour)
	if _, err := io.ReadAll(limited); errors.Is(err, ErrSilent) {
		t.Errorf("closed by the peer: %v", err)
	}
	conn.Close()
	if _, err := limited.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed here: %v", err)
	}
}

// late is a connection with a silent peer, in a process whose timers are late.
type late struct {
	net.Conn
	deadline time.Time
	by       []time.Duration // how late each Read comes back; then none
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
	for name, test := range map[string]struct {
		by   []time.Duration
		want time.Duration
	}{
		"never stopped":            {nil, timeout},
		"a little late":            {[]time.Duration{step / 2, step / 2}, timeout + step},
		"stopped at first":         {[]time.Duration{minute}, step + minute + timeout},
		"stopped in the last step": {[]time.Duration{0, 0, 0, minute}, timeout + minute + timeout},
		"stopped again and again":  {[]time.Duration{minute, 0, minute, minute}, 4*step + 3*minute + timeout},
		"stopped for the timeout":  {[]time.Duration{0, timeout}, 2*step + timeout + timeout},
		"as long as the timeout":   {[]time.Duration{0, timeout - step}, timeout + timeout - step},
		"late each time":           {[]time.Duration{2 * step, 2 * step, 2 * step, 2 * step}, timeout + 8*step},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := LimitSilence(&late{by: test.by}, timeout).Read(nil)
				if took := time.Since(began); err != ErrSilent || took != test.want {
					t.Errorf("%v after %v; want ErrSilent after %v", err, took, test.want)
				}
			})
		})
	}
}
