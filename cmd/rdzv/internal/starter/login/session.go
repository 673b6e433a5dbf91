package login

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/cmd/rdzv/internal/starter/hosts"
)

// Session is an ssh process whose other end is the remote rdzv.
type Session struct {
	Host   hosts.Host
	Path   string         // of rdzv on the host
	Stdin  io.WriteCloser // of the remote rdzv
	Stdout io.Reader      // of the remote rdzv

	all     *starting
	mark    string // begins what bootstrap.sh prints
	machine string // its identity
	began   time.Time
	stdin   *os.File
	stdout  *os.File
	lines   *bufio.Reader // of stdout
	words   *words        // what it writes to stderr

	process *os.Process
	ended   chan struct{} // closed when ssh has ended, and err is set
	err     error
	code    int // ssh's exit code, -1 after a signal
	closing atomic.Bool
	closed  sync.Once
}

// flags of ssh. An existing ControlMaster is used, which is the way to passwords and second
// factors; a new one would hold the output after the job has ended.
var flags = []string{
	"-T", "-x", "-a",
	"-o", "BatchMode=yes",
	"-o", "ConnectTimeout=10",
	"-o", "ServerAliveInterval=5",
	"-o", "ServerAliveCountMax=3",
	"-o", "ControlMaster=no",
	"-o", "ClearAllForwardings=yes",
	"-o", "RemoteCommand=none",
}

// login starts ssh. It has its own session, so that it gets no signals from the terminal.
func (s *starting) login(h hosts.Host) (*Session, error) {
	session := &Session{
		Host: h, all: s, mark: newMark(), began: time.Now(), words: newWords(),
		ended: make(chan struct{}),
	}
	args := append(s.SSH[1:len(s.SSH):len(s.SSH)], flags...)
	ssh := exec.Command(s.SSH[0], append(args, h.String(), remoteLine(session.mark))...)
	ssh.Env = s.Environ
	ssh.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var pipes [3][2]*os.File // stdin, stdout, stderr; each: to read, to write
	for i := range pipes {
		var err error
		if pipes[i][0], pipes[i][1], err = os.Pipe(); err != nil {
			closeAll(pipes[:i])
			return nil, err
		}
	}
	ssh.Stdin, ssh.Stdout, ssh.Stderr = pipes[0][0], pipes[1][1], pipes[2][1]
	if err := ssh.Start(); err != nil {
		closeAll(pipes[:])
		return nil, err
	}
	for _, ours := range []*os.File{pipes[0][0], pipes[1][1], pipes[2][1]} {
		ours.Close()
	}
	session.stdin, session.stdout, session.process = pipes[0][1], pipes[1][0], ssh.Process
	session.lines = bufio.NewReaderSize(session.stdout, 64<<10)
	session.Stdin, session.Stdout = session.stdin, session.lines
	go session.words.read(pipes[2][0])
	go session.await(ssh, pipes[2][0])
	return session, nil
}

func closeAll(pipes [][2]*os.File) {
	for _, pipe := range pipes {
		pipe[0].Close()
		pipe[1].Close()
	}
}

// await waits for ssh's end. Another process may have its stderr open, such as a ControlMaster of a
// jump host: this one's end is what counts.
func (s *Session) await(ssh *exec.Cmd, stderr *os.File) {
	for unix.Waitid(unix.P_PID, ssh.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	// a ProxyCommand is of no use any more. The number is still ssh's, which has not been waited for
	syscall.Kill(-ssh.Process.Pid, syscall.SIGKILL)
	err := ssh.Wait()
	select {
	case <-s.words.end:
	case <-time.After(time.Second):
		stderr.SetReadDeadline(time.Unix(1, 0))
		<-s.words.end
	}
	stderr.Close()
	s.code = ssh.ProcessState.ExitCode()
	if err != nil && !s.closing.Load() {
		s.err = fmt.Errorf("ssh to %s has ended: %w", s.Host.Name, s.cause(err))
	}
	close(s.ended)
}

// cause is what ssh or the remote rdzv last wrote to stderr, or else how ssh ended.
func (s *Session) cause(err error) error {
	if last := lastLine(s.words.text()); last != "" {
		return errors.New(last)
	}
	return err
}

// Wait waits until ssh has ended. Its error has what ssh or the remote rdzv last wrote to stderr;
// it is nil if Close has ended ssh. ssh may stay longer than the remote rdzv: until every process
// that has its output has ended.
func (s *Session) Wait() error {
	<-s.ended
	return s.err
}

// Close closes Stdin, ends ssh by SIGTERM, then by SIGKILL (at once if ctx is done), and returns
// when it has ended. A Read from Stdout then fails.
func (s *Session) Close(ctx context.Context) {
	s.closed.Do(func() {
		s.closing.Store(true)
		s.stdin.Close()
		for _, step := range []struct {
			signal syscall.Signal
			after  time.Duration
		}{{0, 200 * time.Millisecond}, {syscall.SIGTERM, 2 * time.Second}, {syscall.SIGKILL, 0}} {
			if step.signal != 0 {
				s.signal(step.signal)
			}
			if step.signal != syscall.SIGKILL && s.endsWithin(ctx, step.after) {
				break
			}
		}
		<-s.ended
		s.stdout.Close()
	})
}

func (s *Session) endsWithin(ctx context.Context, limit time.Duration) bool {
	select {
	case <-s.ended:
		return true
	case <-ctx.Done():
	case <-time.After(limit):
	}
	return false
}

// signal reaches ssh and its ProxyCommand, which is in its process group.
func (s *Session) signal(signal syscall.Signal) {
	select {
	case <-s.ended: // the number may be another process's
	default:
		syscall.Kill(-s.process.Pid, signal)
	}
}
