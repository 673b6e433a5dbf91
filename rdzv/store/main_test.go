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

// patience is how long a test waits for an event that must happen.
const patience = 30 * time.Second

// holderDir makes the test binary start a store in this directory and run until it is killed, see
// holder.
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
	io.Copy(io.Discard, os.Stdin) // until the test ends
	os.Exit(0)
}

// holder starts another process with a store in dir. It returns the store's directory and a
// function that sends SIGKILL to the process and waits for it.
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
		t.Fatal("the store in the other process did not start")
	}
	return lines.Text(), kill
}
