package secret

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// tail is a token.
const tail = "c41d9e70b3825f6a0817d2e94bfa6350"

func TestParseToken(t *testing.T) {
	const random = "c41d9e70-b3825f6a"
	for _, text := range []string{random, " \t" + random + "\r\n", strings.Repeat("x", maxToken)} {
		if got, err := ParseToken(text); err != nil || string(got) != strings.TrimSpace(text) {
			t.Errorf("ParseToken(%q) = %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "\n", "my password", random[:15] + "  ", strings.Repeat("x", maxToken+1)} {
		if _, err := ParseToken(text); err == nil {
			t.Errorf("ParseToken(%.40q) succeeds", text)
		} else if len(text) > 2 && strings.Contains(err.Error(), text) {
			t.Errorf("the error repeats the token: %v", err)
		}
	}
	if got, err := ParseToken(NewToken()); err != nil || len(got) != 2*tokenLen {
		t.Errorf("NewToken: %d bytes, %v", len(got), err)
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(NewToken())
	f.Add("my password")
	f.Fuzz(func(t *testing.T, text string) {
		if b, err := ParseToken(text); err == nil && len(b) < MinSecret {
			t.Errorf("ParseToken(%q) has %d bytes", text, len(b))
		}
	})
}

func tokenSource(t *testing.T) TokenSource {
	return TokenSource{Home: t.TempDir(), Temp: t.TempDir(), UID: os.Getuid()}
}

func TestTokenIsCreatedOnce(t *testing.T) {
	s := tokenSource(t)
	tokens := make([][]byte, 32)
	var group sync.WaitGroup
	for i := range tokens {
		group.Go(func() {
			var err error
			if tokens[i], err = LoadToken(s); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, token := range tokens {
		if !bytes.Equal(token, tokens[0]) {
			t.Fatal("two processes created different tokens")
		}
	}
	dir := filepath.Join(s.Home, ".config", "rdzv")
	wantMode(t, dir, 0o700)
	wantMode(t, filepath.Join(dir, "token"), 0o600)
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("files in the directory: %v", left)
	}
}

// Place names what LoadToken has read.
func TestTokenPlace(t *testing.T) {
	s := tokenSource(t)
	s.Home = filepath.Join(s.Home, "missing")
	checkPlace := func(want string) {
		t.Helper()
		if _, err := LoadToken(s); err != nil {
			t.Fatal(err)
		}
		if got := s.Place(); got != want {
			t.Errorf("Place() = %q, want %q", got, want)
		}
	}
	temp := filepath.Join(s.Temp, fmt.Sprint("rdzv-", s.UID), "token")
	checkPlace(temp)
	s.Home = t.TempDir()
	checkPlace(filepath.Join(s.Home, ".config", "rdzv", "token"))
	s.Text = tail
	checkPlace("RDZV_TOKEN")
	s.File = temp
	checkPlace(temp)
}

func wantMode(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != mode {
		t.Errorf("%s has mode %o", path, info.Mode().Perm())
	}
}

func TestTokenOrder(t *testing.T) {
	s := tokenSource(t)
	s.Text = "0f" + tail
	got, err := LoadToken(s)
	if err != nil || string(got) != "0f"+tail {
		t.Errorf("RDZV_TOKEN: %x, %v", got, err)
	}
	s.File = filepath.Join(s.Temp, "file")
	write(t, s.File, "1e"+tail, 0o600)
	if got, err = LoadToken(s); err != nil || string(got) != "1e"+tail {
		t.Errorf("--token-file: %x, %v", got, err)
	}
	if left, _ := os.ReadDir(s.Home); len(left) != 0 {
		t.Errorf("a token was created although none was needed: %v", left)
	}
	s.Text, s.File = "secret-secret", ""
	_, err = LoadToken(s)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot use RDZV_TOKEN: ") ||
		strings.Contains(err.Error(), "secret-secret") {
		t.Errorf("an invalid RDZV_TOKEN: %v", err)
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestTokenFileIsRefused(t *testing.T) {
	good := "1e" + tail
	belongs := fmt.Sprintf("it belongs to user %d, not to user %d", os.Getuid(), os.Getuid()+1)
	for name, c := range map[string]struct {
		want    string
		prepare func(s *TokenSource, dir, path string)
	}{
		"file readable by others": {"others can read it (mode 0640): chmod 600 ",
			func(_ *TokenSource, _, path string) { write(t, path, good, 0o640) }},
		"symbolic link": {"it is a symbolic link", func(_ *TokenSource, dir, path string) {
			write(t, dir+"/x", good, 0o600)
			os.Symlink("x", path)
		}},
		"dangling link": {"it is a symbolic link",
			func(_ *TokenSource, _, path string) { os.Symlink("/nonexistent/x", path) }},
		"directory instead of a file": {"not a regular file",
			func(_ *TokenSource, _, path string) { os.Mkdir(path, 0o700) }},
		"directory of another user": {belongs, func(s *TokenSource, _, path string) {
			write(t, path, good, 0o600)
			s.UID++
		}},
		"empty file": {"too short",
			func(_ *TokenSource, _, path string) { write(t, path, "", 0o600) }},
		"password": {"too short",
			func(_ *TokenSource, _, path string) { write(t, path, "my password", 0o600) }},
		"directory writable by others": {"others can write to it (mode 0770)",
			func(_ *TokenSource, dir, _ string) { os.Chmod(dir, 0o770) }},
		"link to a directory": {"not a directory", func(_ *TokenSource, dir, _ string) {
			os.Rename(dir, dir+".real")
			os.Symlink(dir+".real", dir)
		}},
		"file instead of the directory": {"not a directory", func(_ *TokenSource, dir, _ string) {
			os.Remove(dir)
			write(t, dir, "", 0o600)
		}},
	} {
		s := tokenSource(t)
		dir := filepath.Join(s.Home, ".config", "rdzv")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		c.prepare(&s, dir, filepath.Join(dir, "token"))
		_, err := LoadToken(s)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// A token file must belong to the user who runs rdzv. Only root can give a file to another user, so
// an ordinary user checks its own file as if it were another user.
func TestTokenFileOfAnotherUser(t *testing.T) {
	const other = 65533
	path := filepath.Join(t.TempDir(), "token")
	write(t, path, "1e"+tail, 0o600)
	owner := os.Getuid()
	if owner == 0 {
		owner = other
		if err := os.Chown(path, owner, -1); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		uid  int
		want string
	}{
		{owner, ""},
		{owner + 1, fmt.Sprintf("cannot use token file %q: it belongs to user %d, not to user %d",
			path, owner, owner+1)},
	} {
		s := TokenSource{File: path, UID: c.uid}
		_, named := s.read(s.File, true)
		_, own := s.read(path, false)
		for _, err := range []error{named, own} {
			if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && got != c.want {
				t.Errorf("as user %d: %s", c.uid, got)
			}
		}
	}
}

// A file of root is accepted only where the user has specified it. It may be readable by a group,
// because otherwise this process could not read it.
func TestTokenFileOfRoot(t *testing.T) {
	s := TokenSource{File: "/etc/passwd", UID: 65533}
	_, err := s.read(s.File, true)
	want := "others can read it (mode 0644): chmod 640 /etc/passwd"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("as --token-file: %v, want %s", err, want)
	}
	_, err = s.read(s.File, false)
	want = "it belongs to user 0, not to user 65533"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("in the home directory: %v, want %s", err, want)
	}
}

func TestPrivateMode(t *testing.T) {
	for _, c := range []struct {
		owner, uid int
		want       fs.FileMode
	}{{0, 0, 0o600}, {1000, 1000, 0o600}, {0, 1000, 0o640}} {
		if got := privateMode(c.owner, c.uid); got != c.want {
			t.Errorf("privateMode(%d, %d) = %04o, want %04o", c.owner, c.uid, got, c.want)
		}
	}
}

// A file that the user has specified may be a symbolic link, as secrets mounted by Kubernetes are.
func TestNamedTokenFile(t *testing.T) {
	s := tokenSource(t)
	write(t, s.Temp+"/data", "1e"+tail, 0o400)
	if err := os.Symlink("data", s.Temp+"/link"); err != nil {
		t.Fatal(err)
	}
	s.File = s.Temp + "/link"
	if _, err := LoadToken(s); err != nil {
		t.Error(err)
	}
	s.File = s.Temp + "/none"
	want := `cannot read token file "` + s.File + `": no such file or directory`
	if _, err := LoadToken(s); err == nil || err.Error() != want {
		t.Errorf("LoadToken: %v, want %s", err, want)
	}
}

func TestTokenWithoutHome(t *testing.T) {
	for _, home := range []string{"", "/", "/nonexistent", "/proc"} {
		s := tokenSource(t)
		s.Home = home
		a, err := LoadToken(s)
		if err != nil {
			t.Errorf("home %q: %v", home, err)
			continue
		}
		if b, err := LoadToken(s); err != nil || !bytes.Equal(a, b) {
			t.Errorf("home %q: second LoadToken: %v", home, err)
		}
		if left, _ := os.ReadDir(s.Temp); len(left) != 1 {
			t.Errorf("home %q: files in the temporary directory: %v", home, left)
		}
	}
}
