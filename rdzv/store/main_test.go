package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const patience = 30 * time.Second

// holderDir asks the test binary to start a store in a directory and to hold it
// until it is killed, see holder.
const holderDir = "RDZV_TEST_STORE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holderDir); dir != "" {
		hold(dir)
	}
	if dir := os.Getenv(fullDir); dir != "" {
		fill(dir)
	}
	goleak.VerifyTestMain(m)
}

func hold(dir string) {
	s, err := Start(context.Background(), Config{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.dir.path)
	io.Copy(io.Discard, os.Stdin) // until the test has gone
	os.Exit(0)
}

// holder starts another process with a store in dir, and returns the store's
// directory and what kills the process as SIGKILL does.
func holder(t *testing.T, dir string) (path string, kill func()) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), holderDir+"="+dir)
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close() })
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() { c.Process.Kill(); c.Wait() })
	t.Cleanup(kill)
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		t.Fatal("the other store did not start")
	}
	return lines.Text(), kill
}
