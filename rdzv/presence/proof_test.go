package presence

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// That a connection has ended proves only then that no process of an agent runs if all of these have
// held it, and if the kernel at the other end says so.
func TestWhatTheEndOfAConnectionProves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hold bool
		// end ends the connection; file is a duplicate of its socket if the processes hold it.
		end  func(a agent, conn *net.TCPConn, file *os.File)
		want bool
	}{
		"the agent is killed": {false, func(_ agent, conn *net.TCPConn, _ *os.File) { conn.Close() }, false},
		"the agent is killed, then the last process ends": {true, func(_ agent, conn *net.TCPConn, file *os.File) {
			conn.Close()
			file.Close()
		}, true},
		"the last process has not read all": {true, func(_ agent, conn *net.TCPConn, file *os.File) {
			conn.Close()
			raw, _ := file.SyscallConn()
			raw.Control(func(fd uintptr) { syscall.Shutdown(int(fd), syscall.SHUT_WR) })
			file.Close()
		}, true},
		"a reset": {true, func(_ agent, conn *net.TCPConn, file *os.File) {
			conn.SetLinger(0)
			file.Close()
			conn.Close()
		}, false},
		"the agent says that nothing runs": {false, func(a agent, _ *net.TCPConn, _ *os.File) {
			a.LeaveEmpty(t.Context())
		}, true},
		"the agent only disconnects": {true, func(a agent, _ *net.TCPConn, file *os.File) {
			a.Abandon()
			file.Close()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry, address := serve(t, "1", DefaultTimeout)
			var dialed atomic.Pointer[net.TCPConn]
			a := open(t, connect(t, DefaultTimeout, func(ctx context.Context) (net.Conn, error) {
				if dialed.Load() != nil {
					return nil, context.Canceled // it does not connect again
				}
				conn, err := to(address)(ctx)
				if err == nil {
					dialed.Store(conn.(*net.TCPConn))
				}
				return conn, err
			}), "a")
			var file *os.File
			if c.hold {
				var err error
				if file, err = a.Hold(); err != nil || file == nil {
					t.Fatalf("%v, %v", file, err)
				}
				defer file.Close()
				raw, _ := file.SyscallConn()
				raw.Control(func(fd uintptr) {
					if flags, _ := unix.FcntlInt(fd, unix.F_GETFD, 0); flags&unix.FD_CLOEXEC == 0 {
						t.Error("programs that are executed would get the socket")
					}
				})
				a.awaitAnswer(t)
			}
			c.end(a, dialed.Load(), file)
			if loss := wantLost(t, registry, "a"); loss.Ended != c.want || loss.After != 0 {
				t.Errorf("%+v", loss)
			}
		})
	}
}

// awaitAnswer waits until the server has answered all messages.
func (a agent) awaitAnswer(t *testing.T) {
	answered := make(chan struct{}, 1)
	a.Renew(DefaultTimeout, func() time.Duration { return 0 }, func(time.Duration) { answered <- struct{}{} })
	select {
	case <-answered:
	case <-within(t).Done():
		t.Fatal("no answer")
	}
}
