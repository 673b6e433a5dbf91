package login

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdzv/cmd/rdzv/internal/starter/hosts"
)

// bed is one sshd on the loopback interface, with a home directory and keys of its own, and a
// configuration of ssh in which it is any number of hosts.
type bed struct {
	*fake
	port string
}

// findSSHD is OpenSSH's server: an installed one, or the one that make test unpacks.
func findSSHD(t *testing.T) string {
	unpacked, _ := filepath.Abs("../../../../../.cache/openssh/usr/sbin/sshd")
	for _, path := range []string{"/usr/sbin/sshd", unpacked} {
		if exec.Command(path, "-?").Run(); exec.Command("test", "-x", path).Run() == nil {
			return path
		}
	}
	t.Skip("no sshd: make test installs it")
	return ""
}

// newBed starts sshd with more lines of its configuration, and writes ssh's: Hosts node1 to nodeN,
// and further lines.
func newBed(t *testing.T, n int, sshdConfig, sshConfig string) *bed {
	t.Helper()
	sshd := findSSHD(t)
	f := newFake(t)
	b := &bed{f, freePort(t)}
	for _, key := range []string{"hostkey", "key"} {
		b.must(exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f.dir+"/"+key))
	}
	public := strings.Join(f.lines("key.pub"), "")
	f.write("authorized", public+"\n")
	f.write("known", "* "+strings.Join(f.lines("hostkey.pub"), "")+"\n")
	f.write("home/.profile", "")
	f.write("sshd_config", fmt.Sprintf("ListenAddress 127.0.0.1:%s\nHostKey %[2]s/hostkey\nPidFile none\n"+
		"AuthorizedKeysFile %[2]s/authorized\nStrictModes no\nPermitRootLogin yes\nAcceptEnv FAKE_HOST\n"+
		"PasswordAuthentication no\nKbdInteractiveAuthentication no\n"+
		"SetEnv HOME=%[2]s/home FAKE=%[2]s PATH=%[2]s/bin:%[3]s\n%[4]s\n",
		b.port, f.dir, os.Getenv("PATH"), sshdConfig))
	b.configure(n, sshConfig)
	f.SSH = []string{"ssh", "-F", f.dir + "/config"}
	f.Environ = nil // FAKE is in the environment of what sshd has started
	b.serve(sshd)
	return b
}

// configure writes ssh's configuration. Its first lines are the ones that count.
func (b *bed) configure(n int, first string) {
	var config strings.Builder
	config.WriteString(strings.ReplaceAll(strings.ReplaceAll(first, "DIR", b.dir), "PORT", b.port) + "\n")
	for i := range n {
		fmt.Fprintf(&config, "Host node%d\n SetEnv FAKE_HOST=node%[1]d\n", i+1)
	}
	fmt.Fprintf(&config, "Host node*\n HostName 127.0.0.1\n Port %s\n IdentityFile %[2]s/key\nHost *\n"+
		" IdentitiesOnly yes\n IdentityAgent none\n UserKnownHostsFile %[2]s/known\n"+
		" GlobalKnownHostsFile none\n", b.port, b.dir)
	b.write("config", config.String())
}

// serve starts sshd, for root in a mount namespace where it has the directory and the user that it
// needs, and waits until it listens.
func (b *bed) serve(sshd string) {
	command := exec.Command(sshd, "-D", "-e", "-f", b.dir+"/sshd_config")
	if os.Getuid() == 0 {
		accounts, _ := os.ReadFile("/etc/passwd")
		lines := []string{"sshd:x:65533:65534::/run/sshd:/bin/false"}
		for line := range strings.Lines(string(accounts)) {
			if fields := strings.Split(strings.TrimSpace(line), ":"); fields[0] != "sshd" {
				if fields[0] == "root" {
					fields[6] = "/bin/bash"
				}
				lines = append(lines, strings.Join(fields, ":"))
			}
		}
		b.write("passwd", strings.Join(lines, "\n")+"\n")
		command = exec.Command("unshare", "-m", "sh", "-c", `mount --bind "$1" /etc/passwd && `+
			`mount -t tmpfs none /run && mkdir -m 755 /run/sshd && shift && exec "$@"`,
			"sh", b.dir+"/passwd", sshd, "-D", "-e", "-f", b.dir+"/sshd_config")
	}
	var log bytes.Buffer
	command.Stderr = &log
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	b.Cleanup(func() {
		command.Process.Kill()
		<-ended
		if b.Failed() {
			b.Logf("sshd:\n%s", &log)
		}
	})
	for {
		if c, err := net.Dial("tcp", "127.0.0.1:"+b.port); err == nil {
			c.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			b.Fatalf("sshd: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func (b *bed) must(c *exec.Cmd) {
	b.Helper()
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%v: %v\n%s", c, err, out)
	}
}

// nothingRuns tests that what sshd has started ends.
func (b *bed) nothingRuns() {
	b.Helper()
	var left []string
	for range 100 {
		left = nil
		environs, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, path := range environs {
			if environ, _ := os.ReadFile(path); bytes.Contains(environ, []byte("\x00FAKE="+b.dir+"\x00")) {
				command, _ := os.ReadFile(filepath.Dir(path) + "/cmdline")
				left = append(left, string(bytes.ReplaceAll(command, []byte{0}, []byte{' '})))
			}
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.Errorf("processes are left: %q", left)
}

// Hosts of a real sshd, whatever the user's configuration asks for.
func TestSSHD(t *testing.T) {
	for name, config := range map[string]string{
		"plain": "",
		"settings": "Host *\n RequestTTY force\n RemoteCommand date\n LocalForward PORT 127.0.0.1:1\n" +
			" ControlMaster auto\n ControlPath DIR/master-%C\n ControlPersist 60\n ForwardX11 yes\n" +
			" EscapeChar ~\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, 3, "Banner "+os.DevNull, config)
			b.start(numbered(3)...)
			if n := b.count("unpacked"); n != 1 {
				t.Errorf("the shared home got the binary %d times", n)
			}
			b.start(numbered(3)...)
			b.nothingRuns()
			if masters, _ := filepath.Glob(b.dir + "/master-*"); len(masters) > 0 {
				t.Errorf("ssh has started masters: %q", masters)
			}
		})
	}
}

// Everything that fails is in ssh's words, and the good host runs nothing.
func TestSSHDFails(t *testing.T) {
	b := newBed(t, 6, "", "Host node2\n User nobody-of-that-name\nHost node3\n UserKnownHostsFile /dev/null\n"+
		"Host node4\n HostName name.invalid\nHost node5\n Port 1\nHost node6\n ProxyJump node5\n")
	got := b.fails(numbered(6)...)
	for i, want := range []struct{ cause, hint string }{
		{"cannot reach node2: Permission denied (publickey)", "ssh-copy-id node2"},
		{"cannot reach node3: Host key verification failed", "ssh node3, once"},
		{"cannot reach node4: Could not resolve hostname name.invalid", "is node4 its name"},
		{"cannot reach node5: connect to host 127.0.0.1 port 1: Connection refused", "does sshd run on node5?"},
		{"cannot reach node6: connect to host 127.0.0.1 port 1: Connection refused", ""},
	} {
		if i >= len(got.List) {
			t.Errorf("no failure: %s", want.cause)
		} else if f := got.List[i]; !strings.HasPrefix(f.Error(), want.cause) || !strings.HasPrefix(f.Hint, want.hint) {
			t.Errorf("%v, hint %q; want %s, %s", &f, f.Hint, want.cause, want.hint)
		}
	}
	b.nothingRuns()
}

// More hosts behind a jump host than its sshd permits logins at a time.
func TestSSHDJumpHost(t *testing.T) {
	b := newBed(t, 24, "MaxStartups 10:100:10\nMaxSessions 10", "Host node1? node2?\n ProxyJump gate\n"+
		"Host gate\n HostName 127.0.0.1\n Port PORT\n IdentityFile DIR/key\n")
	b.start(numbered(24)...)
	b.nothingRuns()
}

// A master that the user has opened is used, and remains. It needs no key.
func TestSSHDMaster(t *testing.T) {
	b := newBed(t, 1, "", "Host node1\n ControlPath DIR/master\n")
	master := exec.Command("ssh", "-F", b.dir+"/config", "-M", "-N", "node1")
	if err := master.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		master.Process.Signal(syscall.SIGTERM)
		master.Wait()
	}()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(b.dir + "/master"); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("no master")
		}
	}
	b.write("authorized", "")
	b.start(numbered(1)...)
	b.must(exec.Command("ssh", "-F", b.dir+"/config", "-O", "check", "node1"))
	b.nothingRuns()
}

// Login files that read, or run another shell: nothing is left on the host.
func TestSSHDLoginFiles(t *testing.T) {
	for name, text := range map[string]string{
		"reads": "cat >/dev/null",
		"fish":  "exec fish",
		"waits": "sleep 8",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, 1, "", "")
			if os.Getuid() != 0 && !strings.HasSuffix(os.Getenv("SHELL"), "bash") {
				t.Skip("the login shell is not bash")
			}
			b.Silence = 2 * time.Second
			b.write("home/.bashrc", text+"\n")
			if got := b.fails(numbered(1)...).Error(); !strings.HasPrefix(got, "cannot reach node1: no answer for 2 s") {
				t.Error(got)
			}
			b.nothingRuns()
		})
	}
}

// A process that a login file leaves behind keeps ssh open, but not Close.
func TestSSHDLeftBehind(t *testing.T) {
	b := newBed(t, 1, "", "")
	b.write("home/.bashrc", "sleep 20 &\n")
	b.program("remote", "#!/bin/sh\necho done")
	sessions, err := All(t.Context(), []hosts.Host{{Name: "node1"}}, b.Options)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if n, err := sessions[0].Stdout.Read(got); string(got[:n]) != "done\n" {
		t.Errorf("it wrote %q, %v", got[:n], err)
	}
	began := time.Now()
	b.close(sessions[0])
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("Close took %v", took)
	}
}

// An ssh that is killed ends the remote rdzv, and says so.
func TestSSHDKilled(t *testing.T) {
	b := newBed(t, 1, "", "")
	sessions, err := All(t.Context(), numbered(1), b.Options)
	if err != nil {
		t.Fatal(err)
	}
	sessions[0].process.Kill()
	if err := sessions[0].Wait(); err == nil || err.Error() != "ssh to node1 has ended: signal: killed" {
		t.Errorf("Wait: %v", err)
	}
	sessions[0].Close(t.Context())
	b.nothingRuns()
}
