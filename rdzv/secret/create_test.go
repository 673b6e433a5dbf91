package secret

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// createEnv makes the test binary create tokens in a directory until it is killed.
const createEnv = "SECRET_TEST_CREATE"

func TestMain(m *testing.M) {
	dir := os.Getenv(createEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	path := filepath.Join(dir, "token")
	for err := error(nil); err == nil; err = create(dir, path) {
		os.Remove(path)
		fmt.Println()
	}
}

// An agent that is killed while it creates the token leaves no other file.
func TestKilledWhileCreating(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "token") // a file system that has files without a name
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for i := range 20 {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), createEnv+"="+dir)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(out); i >= 0 && lines.Scan(); i-- {
		}
		cmd.Process.Kill()
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Fatal(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files left by 20 killed agents: %q, %v", left, err)
	}
}

// Where a file without a name cannot be created, or not be given one, it has a temporary name
// first.
func TestCreateNamed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	for i := range 2 {
		if err := createNamed(dir, path); i == 0 && err != nil || i == 1 &&
			!errors.Is(err, os.ErrExist) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("files: %v, %v", left, err)
	}
	wantMode(t, path, 0o600)
}

// The process that creates a token is told its path, and no other one.
func TestCreatedIsReported(t *testing.T) {
	s := tokenSource(t)
	var created []string
	s.Created = func(path string) { created = append(created, path) }
	for range 2 {
		if _, err := LoadToken(s); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(created, []string{s.Place()}) {
		t.Errorf("reported %q, want %q once", created, s.Place())
	}
}

// Without a temporary directory there is no token of this host only, and with one its path and the
// reason are reported.
func TestTokenOfThisHost(t *testing.T) {
	for _, home := range []string{"", "/proc"} {
		s := tokenSource(t)
		s.Home = home
		var path string
		var cause error
		s.Elsewhere = func(p string, err error) { path, cause = p, err }
		if _, err := LoadToken(s); err != nil || path != s.Place() || cause == nil {
			t.Errorf("home %q: %v; reported %q because of %v, want %q", home, err, path, cause,
				s.Place())
		}
		s.Temp = ""
		_, err := LoadToken(s)
		if _, is := errors.AsType[*NoPlaceError](err); !is || err.Error() != cause.Error() {
			t.Errorf("home %q without a temporary directory: %v, want %v", home, err, cause)
		}
	}
}
