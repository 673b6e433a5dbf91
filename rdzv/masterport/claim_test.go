package masterport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rdzv/internal/proctest"
)

// holdEnv makes the test binary another user's job that reserves a port, prints it, and keeps it
// until its standard input ends.
const holdEnv = "MASTERPORT_TEST_HOLD"

func TestMain(m *testing.M) {
	if os.Getenv(holdEnv) == "" {
		os.Exit(m.Run())
	}
	h, err := Hold(0)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(h.Port())
	_, _ = io.Copy(io.Discard, os.Stdin)
	h.Close()
}

// claimAll claims all ports that the kernel may choose, with as many processes as the limit of open
// files requires.
const claimAll = `
import os, resource, socket, sys
first, last = map(int, open("/proc/sys/net/ipv4/ip_local_port_range").read().split())
block, claims = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 50, []
for port in range(first, last + 1):
    if len(claims) == block:
        if os.fork() != 0: break
        claims.clear()
    claims.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    claims[-1].bind("\0rdzv/port/%d" % port)
else: print("all", flush=True)
sys.stdin.read()
`

// Another user who claims all ports cannot keep a job from getting one, nor make two jobs share
// one. In a network of its own the test takes no address from tests of other packages.
func TestAllPortsAreClaimed(t *testing.T) {
	network := []string{"--net"}
	if os.Geteuid() != 0 {
		network = append(network, "--user", "--map-current-user")
	}
	if !proctest.Inside(t, network...) {
		return
	}
	proctest.NeedProgram(t, "/usr/bin/python3")
	claimed, release := asAnotherUser(t, exec.Command("/usr/bin/python3", "-c", claimAll))
	readLine(t, claimed)
	job := exec.Command("/proc/self/exe")
	job.Env = append(os.Environ(), holdEnv+"=1")
	printed, _ := asAnotherUser(t, job)
	port, err := strconv.Atoi(readLine(t, printed))
	if err != nil {
		t.Fatalf("another user's job: %v", err)
	}
	h := hold(t, 0)
	if h.Port() == port {
		t.Errorf("two jobs have port %d", port)
	}
	h.Close()
	_, err = Hold(h.Port())
	if !errors.Is(err, unix.EADDRINUSE) || !strings.Contains(err.Error(), "another job or user") {
		t.Errorf("given port %d: %v", h.Port(), err)
	}
	release()
	if h, err := Hold(port); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("given port %d, which another job has without a claim: %v, %v", port, h, err)
	}
	hold(t, h.Port())
}

// asAnotherUser starts a command, as nobody if this is root, and returns its output. The end of its
// standard input ends it; release also waits for that.
func asAnotherUser(t *testing.T, cmd *exec.Cmd) (output *bufio.Reader, release func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody}
	}
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	output = bufio.NewReader(out)
	release = func() {
		in.Close()
		_, _ = io.Copy(io.Discard, output) // until the last process of the command has ended
		cmd.Wait()
	}
	t.Cleanup(release)
	return output, release
}

func readLine(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}
