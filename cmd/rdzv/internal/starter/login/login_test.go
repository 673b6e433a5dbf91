package login

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rdzv/cmd/rdzv/internal/starter/hosts"
)

// The binary is sent once, kept in the home directory under its hash, and found there later.
func TestColdAndWarm(t *testing.T) {
	f := newFake(t)
	hs := []hosts.Host{{Name: "node1"}, {User: "joe", Name: "node2"}, {Name: "node3"}}
	copied := "home/.cache/rdzv/" + f.build() + "/rdzv"
	for _, when := range []string{"cold", "warm"} {
		for _, s := range f.start(hs...) {
			if want := filepath.Join(f.dir, s.Host.Name, copied); s.Path != want {
				t.Errorf("%s: rdzv is at %s, want %s", when, s.Path, want)
			}
			if got := f.files(s.Host.Name); !reflect.DeepEqual(got, []string{copied}) {
				t.Errorf("%s: %s has the files %q", when, s.Host, got)
			}
		}
		if n := f.count("unpacked"); n != 3 {
			t.Errorf("%s: the binary was unpacked %d times, want 3", when, n)
		}
	}
	for path := copied; path != "home/.cache"; path = filepath.Dir(path) {
		info, err := os.Stat(filepath.Join(f.dir, "node1", path))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v; want mode 700", path, info.Mode(), err)
		}
	}
}

// A shared home directory gets one copy, whichever host is first.
func TestSharedHome(t *testing.T) {
	f := newFake(t)
	hs := numbered(8)
	for _, h := range hs {
		f.write(h.Name+"/env", "HOME=$FAKE/shared; mkdir -p $HOME")
	}
	f.start(hs...)
	if n := f.count("unpacked"); n != 1 {
		t.Errorf("the binary was unpacked %d times, want once", n)
	}
}

// The others do not wait for ever if the first cannot be sent the binary.
func TestFirstFails(t *testing.T) {
	f := newFake(t)
	f.Silence = 3 * time.Second
	// node1 asks for the binary, and then does not read it
	f.program("node1/bin/head", "#!/bin/sh\n[ \"$2\" -lt 9999 ] || sleep 60\nexec /usr/bin/head \"$@\"")
	f.write("remote", remote+"#"+strings.Repeat(incompressible(), 64)+"\n")
	failures := f.fails(numbered(3)...)
	if len(failures.List) != 1 || !strings.Contains(failures.Error(), "cannot start rdzv on node1: no answer for 3 s") {
		t.Errorf("failures: %v", failures)
	}
	if n := f.count("unpacked"); n < 2 {
		t.Errorf("the binary was unpacked %d times, want by node2 and node3", n)
	}
}

// incompressible is text that gzip does not make much smaller.
func incompressible() string {
	var text strings.Builder
	sum := sha256.Sum256(nil)
	for range 256 {
		sum = sha256.Sum256(sum[:])
		fmt.Fprintf(&text, "%x", sum)
	}
	return text.String()
}

// A build in PATH is used; another program of that name is not.
func TestInPath(t *testing.T) {
	f := newFake(t)
	f.program("node1/bin/rdzv", remote)
	f.program("node2/bin/rdzv", strings.Replace(remote, "cat", "dog", 1)) // of the same size
	f.program("node3/bin/rdzv", "#!/bin/sh\n")
	sessions := f.start(numbered(3)...)
	if want := f.dir + "/node1/bin/rdzv"; sessions[0].Path != want {
		t.Errorf("rdzv is at %s, want %s", sessions[0].Path, want)
	}
	for _, s := range sessions[1:] {
		if !strings.Contains(s.Path, "/.cache/rdzv/") {
			t.Errorf("%s: rdzv is at %s, want a copy", s.Host, s.Path)
		}
	}
}

// Copies that nobody has used for 30 days go when another is made; using one counts. Other
// directories stay.
func TestOldCopies(t *testing.T) {
	f := newFake(t)
	f.start(named("node1")...)
	used := f.build()
	cache := f.dir + "/node1/home/.cache/rdzv/"
	for _, build := range []string{"old", "recent"} {
		f.program("node1/home/.cache/rdzv/"+build+"/rdzv", "old")
	}
	f.program("node1/home/.cache/rdzv/store/data", "of a job that runs for long")
	old, recent := time.Now().AddDate(0, 0, -32), time.Now().AddDate(0, 0, -29)
	for build, at := range map[string]time.Time{
		used: old, "old": old, "store": old, "recent": recent,
	} {
		if err := os.Chtimes(cache+build, at, at); err != nil {
			t.Fatal(err)
		}
	}
	f.start(named("node1")...) // uses it
	f.write("remote", remote+"# new\n")
	f.start(named("node1")...)
	var got []string
	entries, _ := os.ReadDir(cache)
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	want := []string{f.build(), "recent", "store", used}
	slices.Sort(want)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("copies: %q, want %q", got, want)
	}
}

// If the copy is damaged on its way, the host does not run it.
func TestDamaged(t *testing.T) {
	f := newFake(t)
	f.program("node1/bin/gzip", "#!/bin/sh\n/bin/gzip \"$@\"; echo")
	failures := f.fails(numbered(2)...)
	if len(failures.List) != 1 || !strings.Contains(failures.Error(), "rdzv on node1: there is no place for rdzv: ") ||
		!strings.Contains(failures.Error(), "is damaged") {
		t.Errorf("failures: %v", failures)
	}
	if got := f.files("node1"); !reflect.DeepEqual(got, []string{"bin/gzip"}) {
		t.Errorf("files are left: %q", got)
	}
}

// All hosts that fail are in one error, in ssh's words and with what to do.
func TestSSHFails(t *testing.T) {
	f := newFake(t)
	f.write("node2/words", "joe@node2: Permission denied (publickey).\r\n")
	f.write("node3/words", "ssh: Could not resolve hostname node3: Name or service not known\r\n")
	f.write("node4/words", "No ED25519 host key is known for node4 and you have requested strict checking.\r\n"+
		"Host key verification failed.\r\n")
	f.write("node5/words", "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\nHost key verification failed.\r\n")
	f.write("node6/words", "ssh: connect to host node6 port 22: Connection refused\r\n")
	f.write("node7/words", "Bad configuration option: foo\r\n")
	hs := numbered(7)
	hs[1].User = "joe"
	got := f.fails(hs...)
	want := &Failures{List: []Failure{
		{Host: hs[1], Cause: "Permission denied (publickey)", Hint: "ssh-copy-id joe@node2"},
		{Host: hs[2], Cause: "Could not resolve hostname node3: Name or service not known",
			Hint: "is node3 its name, or an alias in ~/.ssh/config?"},
		{Host: hs[3], Cause: "Host key verification failed", Hint: "ssh node4, once, and compare its key"},
		{Host: hs[4], Cause: "Host key verification failed",
			Hint: "its key has changed; if you know why: ssh-keygen -R node5, then ssh node5"},
		{Host: hs[5], Cause: "connect to host node6 port 22: Connection refused",
			Hint: "does sshd run on node6? Another port is set in ~/.ssh/config"},
		{Host: hs[6], Cause: "Bad configuration option: foo"},
	}}
	for i := range got.List {
		got.List[i].kind = ""
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("failures:\n%+v\nwant\n%+v", got, want)
	}
	if text := got.Error(); strings.Count(text, "\n") != 5 ||
		!strings.HasPrefix(text, "cannot reach node2: Permission denied (publickey)\n") {
		t.Errorf("the error: %s", text)
	}
}

// A hint that is for many hosts is said once, and for whom.
func TestHints(t *testing.T) {
	var f Failures
	for _, h := range numbered(9) {
		f.List = append(f.List, *newFailure(h, "Permission denied", "ssh-copy-id HOST"))
	}
	f.List = append(f.List, *newFailure(hosts.Host{Name: "a"}, "x", ""),
		*newFailure(hosts.Host{Name: "b"}, "x", "wait"), *newFailure(hosts.Host{Name: "c"}, "x", "wait"))
	want := "ssh-copy-id node1 (likewise for node2, node3, node4, node5, 4 more)\nwait"
	if got := f.Hint(); got != want {
		t.Errorf("hint %q, want %q", got, want)
	}
}

// A login that is closed before authentication is tried three times, others once.
func TestRetries(t *testing.T) {
	f := newFake(t)
	const closed = "kex_exchange_identification: Connection closed by remote host\n" +
		"Connection closed by 10.0.0.1 port 22\n"
	f.write("node1/words", closed)
	f.write("node2/words", closed)
	f.write("node2/once", "")
	f.write("node3/words", "node3: Permission denied (publickey).\n")
	f.write("node4/words", "jumphost loop via node2\n"+closed)
	failures := f.fails(numbered(4)...)
	const because = "cannot reach node4: jumphost loop via node2; kex_exchange_identification: "
	if len(failures.List) != 3 || !strings.Contains(failures.Error(), because) ||
		!strings.Contains(failures.Hint(), "MaxStartups") {
		t.Errorf("failures: %v, hint %q", failures, failures.Hint())
	}
	if got := []int{f.count("node1/logins"), f.count("node2/logins"), f.count("node3/logins")}; !reflect.DeepEqual(got, []int{3, 2, 1}) {
		t.Errorf("logins: %v, want 3, 2, 1", got)
	}
}

// What is not ssh's fault.
func TestHostFails(t *testing.T) {
	for name, c := range map[string]struct{ file, text, cause, hint string }{
		"forced command": {"run", "echo Welcome; echo git only; exit 128",
			`cannot reach node1: the login ended with code 128; it printed "git only"`, "permit other commands"},
		"nologin": {"shell", "/usr/sbin/nologin",
			`cannot reach node1: the login ended with code 1; it printed "This account is currently not available."`, ""},
		"complaints of a login file": {"run", "echo Permission denied >&2; exit 1",
			`cannot reach node1: the login ended with code 1; it printed "Permission denied"`, "permit other commands"},
		"no sh": {"path", "/nonexistent\nexport PATH=/nonexistent", "", ""},
		"silence": {"run", "echo Password?; sleep 60",
			`cannot reach node1: no answer for 2 s; it printed "Password?"`, "do its login files wait or read?"},
		"freezes": {"run", `eval "${line%%; read*}'"; sleep 60`,
			"cannot start rdzv on node1: no answer for 2 s, after its first", ""},
		"another architecture": {"env", `PATH=$FAKE/arm:$PATH`,
			"cannot start rdzv on node1: it is a Linux system (riscv128)", "rdzv exec --nodes 2 --store node1 --"},
		"no end of output": {"run", "yes", `cannot reach node1: no answer for 2 s; it printed "y"`, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.Silence = 2 * time.Second
			f.program("arm/uname", "#!/bin/sh\ncase $1 in -m) echo riscv128 ;; *) PATH=$FAKE/bin exec uname \"$@\" ;; esac")
			if name == "no sh" {
				f.write("node1/run", "PATH=/nonexistent\nexec /bin/bash -c \"$line\"")
				c.cause = "cannot reach node1: its login shell finds no program sh; it printed "
			} else {
				f.write("node1/"+c.file, c.text+"\n")
			}
			failures := f.fails(numbered(2)...)
			if len(failures.List) != 1 || !strings.HasPrefix(failures.Error(), c.cause) || !strings.Contains(failures.Hint(), c.hint) {
				t.Errorf("%v, hint %q; want %s, %s", failures, failures.Hint(), c.cause, c.hint)
			}
			if n := f.count("unpacked"); n > 1 {
				t.Errorf("the binary was unpacked %d times", n)
			}
		})
	}
}

// One machine under two names, or under the name of the starter's own, is refused before rdzv runs.
func TestSameMachine(t *testing.T) {
	f := newFake(t)
	f.write("node2/env", "FAKE_HOST=node1")
	host, _ := os.Hostname()
	f.write("node3/env", "FAKE_HOST="+host)
	f.write("node5/words", "Permission denied\n")
	f.Here = "localhost"
	failures := f.fails(numbered(5)...)
	want := "cannot start rdzv on node2: it is the same machine as node1\n" +
		"cannot start rdzv on node3: it is the same machine as localhost\n" +
		"cannot reach node5: Permission denied"
	if failures.Error() != want {
		t.Errorf("failures: %v\nwant %s", failures, want)
	}
}

func TestNoSSHProgram(t *testing.T) {
	f := newFake(t)
	f.SSH = []string{"/nonexistent/ssh"}
	_, err := All(t.Context(), numbered(2), f.Options)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot log in: ") {
		t.Errorf("All: %v", err)
	}
}

// An end of ctx ends everything that has been started.
func TestInterrupted(t *testing.T) {
	f := newFake(t)
	f.write("node2/run", "sleep 60 & wait")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	go func() {
		for f.count("node1/logins")+f.count("node2/logins") < 2 {
			time.Sleep(10 * time.Millisecond)
		}
		cancel(why)
	}()
	if _, err := All(ctx, numbered(2), f.Options); err != why {
		t.Errorf("All: %v, want %v", err, why)
	}
	f.noneLeft(numbered(2)...)
}

// Whole lines of stderr reach the caller once rdzv runs, and not what login files write. The last
// one is why ssh has ended.
func TestStderr(t *testing.T) {
	f := newFake(t)
	f.program("remote", "#!/bin/sh\nprintf 'one\\ntw' >&2; sleep 0.1; printf 'o\\r\\nthree' >&2; exit 7")
	f.write("node1/env", "echo noise >&2")
	var got []string
	f.Say = func(line string) { got = append(got, line) }
	sessions, err := All(t.Context(), numbered(1), f.Options)
	if err != nil {
		t.Fatal(err)
	}
	if err := sessions[0].Wait(); err == nil || err.Error() != "ssh to node1 has ended: three" {
		t.Errorf("Wait: %v", err)
	}
	sessions[0].Close(t.Context())
	if want := []string{"node1: one", "node1: two", "node1: three"}; !slices.Equal(got, want) {
		t.Errorf("lines: %q, want %q", got, want)
	}
}

// Close ends an ssh that ignores SIGTERM, and that has not ended because a process of a login file
// has its output; at once if ctx is done. A reader returns.
func TestClose(t *testing.T) {
	f := newFake(t)
	f.program("remote", "#!/bin/sh\ntrap '' TERM\nsleep 50 & echo $! >>$FAKE/sleeps\nwhile :; do wait; done")
	sessions, err := All(t.Context(), numbered(2), f.Options)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error)
	go func() {
		_, err := io.Copy(io.Discard, sessions[0].Stdout)
		read <- err
	}()
	sessions[0].Close(t.Context())
	<-read
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sessions[1].Close(ctx)
	sessions[1].Close(ctx)
	for _, s := range sessions {
		if err := s.Wait(); err != nil {
			t.Errorf("%s: %v", s.Host, err)
		}
	}
	f.noneLeft(numbered(2)...)
	for _, sleep := range f.lines("sleeps") {
		if command, _ := os.ReadFile("/proc/" + sleep + "/cmdline"); len(command) > 0 {
			t.Errorf("process %s of ssh's group is left", sleep)
		}
	}
}

// ssh is in a session of its own, where a terminal's signals do not reach it.
func TestOwnSession(t *testing.T) {
	f := newFake(t)
	f.write("remote", "#!/bin/sh\necho \"$(ps -o sid= -p $$)\"; cat")
	sessions, err := All(t.Context(), numbered(1), f.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer sessions[0].Close(t.Context())
	sid := 0
	fmt.Fscan(sessions[0].Stdout, &sid)
	if want := f.lines("node1/logins")[0]; fmt.Sprint(sid) != want {
		t.Errorf("the session is %d, want that of ssh, %s", sid, want)
	}
}
