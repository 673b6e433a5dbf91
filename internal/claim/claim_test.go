package claim

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdzv/internal/proctest"
)

// holderName is the variable with the name that this binary claims until its stdin ends.
const holderName = "CLAIM_TEST_NAME"

func TestMain(m *testing.M) {
	if name := os.Getenv(holderName); name != "" {
		_, err := Take(name)
		fmt.Println("claimed:", err)
		bufio.NewReader(os.Stdin).ReadByte()
		return
	}
	goleak.VerifyTestMain(m)
}

func take(t *testing.T, name string) *Claim {
	t.Helper()
	c, err := Take(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// In a user namespace in which this user has the number of all those without one, whoever has a claim
// may be another user.
func TestOverflowUser(t *testing.T) {
	if !proctest.Inside(t, "--user", "--map-user=65534") {
		return
	}
	name := "test/" + rand.Text()
	defer take(t, name).Close()
	if _, err := Take(name); !errors.Is(err, ErrOtherUser) {
		t.Errorf("Take of a claimed name: %v, want %v", err, ErrOtherUser)
	}
}

// A name can be claimed once, and again when the claim is released.
func TestTake(t *testing.T) {
	name := "test/" + rand.Text()
	first := take(t, name)
	for range 3 {
		_, err := Take(name)
		if taken, ok := errors.AsType[*TakenError](err); !ok || taken.PID != os.Getpid() {
			t.Errorf("Take of a claimed name: %v", err)
		}
	}
	first.Close()
	take(t, name).Close()
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

// A process that has had no free file descriptor answers again when it has one.
func TestNoDescriptor(t *testing.T) {
	l, err := net.Listen("unix", "@rdzv/test/"+rand.Text())
	if err != nil {
		t.Fatal(err)
	}
	c := held(&fails{Listener: l})
	defer c.Close()
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("whoever asks gets %v, want %v", err, io.EOF)
	}
}

// A claim of another process is its user's: this one cannot have it, whoever that is, until the
// process ends.
func TestTakeFromAnotherProcess(t *testing.T) {
	other := 0
	if os.Geteuid() == 0 {
		other = 65534
	}
	for _, uid := range []int{os.Geteuid(), other} {
		t.Run(fmt.Sprintf("uid %d", uid), func(t *testing.T) {
			name := "test/" + rand.Text()
			end := hold(t, name, uid)
			_, err := Take(name)
			taken, ok := errors.AsType[*TakenError](err)
			if own := uid == os.Geteuid(); own && (!ok || taken.PID == os.Getpid()) ||
				!own && err != ErrOtherUser {
				t.Errorf("Take: %v", err)
			}
			end()
			take(t, name).Close()
		})
	}
}

// hold starts a process of a user that has claimed the name, and returns how to end it.
func hold(t *testing.T, name string, uid int) (end func()) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), holderName+"="+name)
	if uid == 0 {
		line := proctest.AsRoot(t, "env", holderName+"="+name, os.Args[0])
		cmd = exec.Command(line[0], line[1:]...)
	} else if uid != os.Geteuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid)}}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "claimed: <nil>\n" {
		t.Fatalf("the other process printed %q (%v)", line, err)
	}
	return func() { in.Close(); cmd.Wait() }
}
