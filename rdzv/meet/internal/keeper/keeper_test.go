package keeper

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// owned starts a process and a keeper that it owns.
func owned(t *testing.T, text string) (owner *exec.Cmd, stop func(), addr string) {
	t.Helper()
	owner = exec.Command("cat")
	in, err := owner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		in.Close()
		_ = owner.Wait()
	})
	t.Cleanup(stop)
	addr = "@rdzv/test/" + strconv.Itoa(owner.Process.Pid)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: addr, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Start(f, owner.Process.Pid, text); err != nil {
		t.Fatal(err)
	}
	return owner, stop, addr
}

func receive(addr string) (string, error) {
	conn, err := net.Dial("unix", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	text, err := io.ReadAll(conn)
	return string(text), err
}

// keepers returns the pids of an owner's keepers that have not ended. A keeper that a test has
// started stays a child of the test binary, as a zombie after its end.
func keepers(owner int) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, _ := os.ReadFile(file)
		if string(line) == Name+"\x00"+strconv.Itoa(owner)+"\x00" {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

func TestKeeper(t *testing.T) {
	text := strings.Repeat("a secret ", 100)
	t.Setenv("A_SECRET", "of the agent")
	leak, err := os.Open(os.DevNull) // stands for a descriptor that the launcher leaks
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	clearCloseOnExec(t, leak)
	owner, stop, addr := owned(t, text)
	for range 3 {
		if got, err := receive(addr); err != nil || got != text {
			t.Fatalf("the keeper sent %q, %v", got, err)
		}
	}
	pids := keepers(owner.Process.Pid)
	if len(pids) != 1 {
		t.Fatalf("keepers: %q", pids)
	}
	environ, err := os.ReadFile("/proc/" + pids[0] + "/environ")
	if err != nil || bytes.Contains(environ, []byte("SECRET")) {
		t.Errorf("the keeper's environment is %q, %v", environ, err)
	}
	files, _ := filepath.Glob("/proc/" + pids[0] + "/fd/*")
	for _, file := range files {
		to, err := os.Readlink(file)
		if err == nil && to == os.DevNull && filepath.Base(file) != "2" {
			t.Errorf("the keeper has inherited descriptor %s", filepath.Base(file))
		}
	}
	stop()
	look, late := time.NewTicker(time.Millisecond), time.After(20*time.Second)
	defer look.Stop()
	for len(keepers(owner.Process.Pid)) > 0 {
		select {
		case <-look.C:
		case <-late:
			t.Fatal("the keeper has not ended with its owner")
		}
	}
	if got, err := receive(addr); err == nil {
		t.Errorf("the keeper sent %q after its owner ended", got)
	}
}

// Without a pidfd, the end of the owner is detected through /proc.
func TestOwnerWithoutPidfd(t *testing.T) {
	owner, stop, _ := owned(t, "text")
	o, err := openOwner(strconv.Itoa(owner.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer o.stat.Close()
	o.pidfd = -1
	if o.ended() {
		t.Fatal("ended() = true for a running owner")
	}
	stop()
	if ended, connected := o.wait(-1); !ended || connected {
		t.Errorf("wait = %t, %t, want true, false", ended, connected)
	}
	if _, err := openOwner(strconv.Itoa(owner.Process.Pid)); err == nil {
		t.Error("openOwner succeeds for a process that has ended")
	}
}

func TestTooLong(t *testing.T) {
	if err := Start(os.Stdin, os.Getpid(), strings.Repeat("x", 1<<20)); err == nil {
		t.Error("Start accepts a text that is larger than a pipe")
	}
}

func clearCloseOnExec(t *testing.T, f *os.File) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETFD, 0)
	})
	if err != nil {
		t.Fatal(err)
	}
}
