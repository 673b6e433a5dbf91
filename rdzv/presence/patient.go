package presence

import (
	"errors"
	"net"
	"os"
	"time"
)

// ErrSilent is what a [Patient] connection's Read returns when the peer was
// silent for too long.
var ErrSilent = errors.New("peer is silent")

// Patient returns conn with a limit on the peer's silence: a Read that waits for
// timeout without a byte fails with [ErrSilent].
//
// Silence counts only while this process itself ran. The wait goes in steps, and
// a step counts for no more than was asked of it: the rest is the lateness of a
// busy machine. One that took longer than the whole timeout means that this
// process was stopped (Ctrl-Z, scontrol suspend, a laptop's lid) and says nothing
// about the peer, so the count begins anew.
func Patient(conn net.Conn, timeout time.Duration) net.Conn {
	return &patient{Conn: conn, timeout: timeout}
}

type patient struct {
	net.Conn
	timeout time.Duration
}

// steps is how many late wake-ups in a row a silent peer costs: few, so that an
// idle connection wakes nobody between two pings.
const steps = 4

func (p *patient) Read(b []byte) (int, error) {
	step := p.timeout / steps
	for waited := time.Duration(0); waited < p.timeout; {
		began := time.Now()
		if err := p.SetReadDeadline(began.Add(step)); err != nil {
			return 0, err
		}
		n, err := p.Conn.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		waited += step
		if time.Since(began) > p.timeout {
			waited = 0
		}
	}
	return 0, ErrSilent
}

// PatientListener returns l with the limit on every connection that it accepts.
func PatientListener(l net.Listener, timeout time.Duration) net.Listener {
	return patientListener{l, timeout}
}

type patientListener struct {
	net.Listener
	timeout time.Duration
}

func (l patientListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Patient(conn, l.timeout), nil
}
