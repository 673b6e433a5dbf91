package secret

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A token is created once, and no other file is left.
func TestCreate(t *testing.T) {
	for name, create := range map[string]func(dir, path string) error{
		"as the file system allows": create, "with a temporary name": createNamed,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "token")
		for i := range 2 {
			if err := create(dir, path); i == 0 && err != nil || i == 1 &&
				!errors.Is(err, os.ErrExist) {
				t.Errorf("%s, %d: %v", name, i, err)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%s: files: %v, %v", name, left, err)
		}
		wantMode(t, path, 0o600)
	}
}

// createIn is where TestKilledWhileCreating creates tokens.
const createIn = "SECRET_TEST_CREATE_IN"

// A process that is killed while it creates a token leaves no other file, and no part of a token.
func TestKilledWhileCreating(t *testing.T) {
	if dir := os.Getenv(createIn); dir != "" {
		for i := 0; ; i++ {
			if err := create(dir, filepath.Join(dir, fmt.Sprint("token", i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	if err := createUnnamed(dir, filepath.Join(dir, "token")); err != nil {
		t.Skipf("a file needs a name here from the beginning: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		cmd := exec.Command(self, "-test.run=^TestKilledWhileCreating$")
		cmd.Env = append(os.Environ(), createIn+"="+dir)
		before := len(files(t, dir))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for limit := time.Now().Add(time.Minute); len(files(t, dir)) < before+3; {
			if time.Sleep(time.Millisecond); time.Now().After(limit) {
				t.Fatal("no tokens are created")
			}
		}
		cmd.Process.Kill()
		cmd.Wait()
		for _, path := range files(t, dir) {
			text, err := os.ReadFile(path)
			if err != nil || len(text) != len(NewToken())+1 {
				t.Errorf("%s has %d bytes, %v", path, len(text), err)
			}
			if !strings.HasPrefix(filepath.Base(path), "token") {
				t.Errorf("%s is left", path)
			}
			os.Remove(path)
		}
	}
}

func files(t *testing.T, dir string) (paths []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths
}

// Where a file needs a name, the next token that is created removes the files of processes that were
// killed long ago, but not those of others that create one now.
func TestOldTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{
		".token-1": 2 * removeAfter, ".token-2": 0, "other": 2 * removeAfter,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	if err := createNamed(dir, filepath.Join(dir, "token")); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, path := range files(t, dir) {
		left = append(left, filepath.Base(path))
	}
	if want := []string{".token-2", "other", "token"}; !slices.Equal(left, want) {
		t.Errorf("files %q, want %q", left, want)
	}
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
