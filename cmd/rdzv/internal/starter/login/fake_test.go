package login

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdzv/cmd/rdzv/internal/starter/hosts"
)

// fakeSSH does what sshd does with a command: it gives it to the login shell, in the home directory
// dir/HOST/home. Files of dir/HOST change that: shell, the login shell; path, directories before
// PATH; env, more of the environment; words, what ssh writes before it exits with 255, once if there is a file once; run, what runs
// instead of the login; inside, what runs before it in a mount namespace of its own. Each start is
// one more line in dir/HOST/logins.
const fakeSSH = `#!/bin/sh
while [ $# -gt 2 ]; do shift; done
if [ "$1" = -G ]; then cat "$FAKE/jump" 2>/dev/null; exit; fi
name=${1#*@} line=$2 here=$FAKE/${1#*@}
mkdir -p "$here/home"
echo $$ >>"$here/logins"
if [ -e "$here/words" ]; then
	cat "$here/words" >&2
	if [ -e "$here/once" ]; then rm "$here/words"; fi
	exit 255
fi
PATH=$(cat "$here/path" 2>/dev/null):$here/bin:$FAKE/bin:$PATH
HOME=$here/home FAKE_HOST=$name SHLVL=0 SSH_CLIENT='127.0.0.1 1 2'
unset XDG_RUNTIME_DIR XDG_CACHE_HOME XDG_CONFIG_HOME ZDOTDIR ENV BASH_ENV
export PATH HOME FAKE_HOST SHLVL SSH_CLIENT line here
if [ -e "$here/env" ]; then . "$here/env"; fi
if [ -e "$here/run" ]; then . "$here/run"; exit; fi
cd "$HOME" 2>/dev/null || cd /
shell=$(cat "$here/shell" 2>/dev/null || echo /bin/sh)
case $shell in *" "*) ;; *) shell="$shell -c" ;; esac
if [ -e "$here/inside" ]; then
	exec unshare -rm sh -c '. "$here/inside"; exec '"$shell"' "$line"'
fi
exec $shell "$line"
`

// fakeUname gives each host a name of its own, so that they are not one machine.
const fakeUname = `#!/bin/sh
case $1 in -n) echo "$FAKE_HOST" ;; *) PATH=${PATH#*:} exec /bin/uname "$@" ;; esac
`

// fakeGzip counts how often the binary is unpacked.
const fakeGzip = `#!/bin/sh
echo >>"$FAKE/unpacked"
exec /bin/gzip "$@"
`

// remote is what the tests start as rdzv: it says where it is, and returns what it gets.
const remote = `#!/bin/sh
echo "$0 $*"
cat
`

// fake is a set of hosts without a network.
type fake struct {
	*testing.T
	dir string
	Options
}

func newFake(t *testing.T) *fake {
	t.Helper()
	dir := t.TempDir()
	f := &fake{t, dir, Options{
		SSH: []string{dir + "/ssh"}, Binary: dir + "/remote", Command: []string{"remote", "two words"},
		Environ: append(os.Environ(), "FAKE="+dir), Silence: 20 * time.Second,
	}}
	f.program("ssh", fakeSSH)
	f.program("remote", remote)
	f.program("bin/uname", fakeUname)
	f.program("bin/gzip", fakeGzip)
	return f
}

// build names the directory of a copy of the binary.
func (f *fake) build() string {
	f.Helper()
	text, err := os.ReadFile(f.Binary)
	if err != nil {
		f.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:buildLength]
}

func (f *fake) program(name, text string) {
	f.Helper()
	f.write(name, text)
	if err := os.Chmod(filepath.Join(f.dir, name), 0o755); err != nil {
		f.Fatal(err)
	}
}

func (f *fake) write(name, text string) {
	f.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.Fatal(err)
	}
}

func (f *fake) lines(name string) []string {
	text, _ := os.ReadFile(filepath.Join(f.dir, name))
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func (f *fake) count(name string) int {
	text, _ := os.ReadFile(filepath.Join(f.dir, name))
	return strings.Count(string(text), "\n")
}

func named(names ...string) (hs []hosts.Host) {
	for _, name := range names {
		hs = append(hs, hosts.Host{Name: name})
	}
	return hs
}

func numbered(n int) (hs []hosts.Host) {
	for i := range n {
		hs = append(hs, hosts.Host{Name: fmt.Sprint("node", i+1)})
	}
	return hs
}

// start starts all hosts, tests that each runs what was sent and gets what it is sent, and ends them.
func (f *fake) start(hs ...hosts.Host) []*Session {
	f.Helper()
	sessions, err := All(f.Context(), hs, f.Options)
	if err != nil {
		f.Fatalf("All: %v", err)
	}
	for i, s := range sessions {
		if s.Host != hs[i] {
			f.Errorf("session %d is of %v, want %v", i, s.Host, hs[i])
		}
		f.talk(s)
		f.close(s)
	}
	return sessions
}

// talk tests that the first output of a session is rdzv's, and that its input is what is sent.
func (f *fake) talk(s *Session) {
	f.Helper()
	r := bufio.NewReader(s.Stdout)
	if line, err := r.ReadString('\n'); line != s.Path+" remote two words\n" {
		f.Errorf("%s: the first line is %q, %v; want %s's", s.Host, line, err, s.Path)
	}
	if _, err := io.WriteString(s.Stdin, "one\ntwo"); err != nil {
		f.Errorf("%s: %v", s.Host, err)
	}
	s.Stdin.Close()
	if rest, err := io.ReadAll(r); string(rest) != "one\ntwo" || err != nil {
		f.Errorf("%s: it got %q, %v", s.Host, rest, err)
	}
}

func (f *fake) close(s *Session) {
	f.Helper()
	s.Close(context.Background())
	if err := s.Wait(); err != nil {
		f.Errorf("%s: %v", s.Host, err)
	}
}

// fails starts hosts, of which at least one must fail, and tests that no ssh process is left.
func (f *fake) fails(hs ...hosts.Host) *Failures {
	f.Helper()
	_, err := All(f.Context(), hs, f.Options)
	failures, ok := errors.AsType[*Failures](err)
	if !ok {
		f.Fatalf("All: %v, want failures", err)
	}
	f.noneLeft(hs...)
	return failures
}

func (f *fake) noneLeft(hs ...hosts.Host) {
	f.Helper()
	for _, h := range hs {
		for _, line := range f.lines(h.Name + "/logins") {
			pid := 0
			fmt.Sscan(line, &pid)
			if pid != 0 && syscall.Kill(pid, 0) == nil {
				f.Errorf("%s: its ssh (process %d) is left", h, pid)
			}
		}
	}
}

// files are the files of a host, without those that the test has made.
func (f *fake) files(host string) (found []string) {
	root := filepath.Join(f.dir, host)
	filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Dir(path) != root {
			path, _ = filepath.Rel(root, path)
			found = append(found, path)
		}
		return nil
	})
	return found
}
