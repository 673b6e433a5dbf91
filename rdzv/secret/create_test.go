package secret

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A token is created once, and no other file is left.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	for i := range 2 {
		if err := create(dir, path); i == 0 && err != nil || i == 1 &&
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
