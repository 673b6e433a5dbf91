package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// What the tests of jobs that ssh starts rely on: the hosts, accounts and faults of testbed/sshd are
// what they say, with ssh alone and with Open MPI.
func TestSSHBed(t *testing.T) {
	t.Parallel()
	b := newSSHBed(t, 3, "--without", "3")
	p := b.newPlace(t)
	run := func(t *testing.T, argv ...string) (string, int) {
		t.Helper()
		c := p.start(b.as(1, "you", argv...)...)
		code := c.code()
		lines, _ := c.output()
		return strings.Join(lines, "\n"), code
	}
	ssh := func(t *testing.T, user string, argv ...string) (string, int) {
		t.Helper()
		return run(t, append([]string{"ssh", "-o", "BatchMode=yes", user}, argv...)...)
	}
	t.Run("accounts", func(t *testing.T) {
		for account, want := range map[string]string{
			"you@node2": "bash you node2 0", "ada@six2": "bash ada node2 0",
			"dash@node2": "dash dash node2 0", "fish@node2": "fish fish node2 0",
			"ksh@node2": "ksh ksh node2 0", "mksh@node2": "mksh mksh node2 0",
			"rbash@node2": "rbash rbash node2 0", "tcsh@node2": "tcsh tcsh node2 0",
			"zsh@node2": "zsh zsh node2 0", "ash@node2": "ash ash node2 0",
			"prints@node2": "Quota: 80%", "rc@node2": "printed by rc",
			"arm@node2": "aarch64", "tools@node2": "/srv/busybox",
			"nohome@node2": "Could not chdir to home directory /home/nohome",
			"forced@node2": "this account runs backups", "nologin@node2": "not available",
			"locked@node2": "Permission denied", "you@node3": "Connection refused",
		} {
			got, code := ssh(t, account,
				`sh -c 'echo $(basename $SHELL) $(id -un) $(hostname) 0; uname -m; echo $PATH'`)
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q (exit code %d), want %q", account, got, code, want)
			}
		}
	})
	t.Run("homes", func(t *testing.T) {
		for account, want := range map[string]string{
			"full": "No space left", "readonly": "Read-only file system", "planted": "Read-only",
			"noexec": "Permission denied", "nohome": "No such file", "ada": "it runs",
		} {
			script := `sh -c 'cp /bin/bash /home/` + account + `/x; /home/` + account + `/x -c "echo it runs"'`
			if got, _ := ssh(t, account+"@node2", script); !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", account, got, want)
			}
		}
		if got, _ := ssh(t, "planted@node2", `sh -c 'readlink /tmp/rdzv-$(id -u)'`); got != "/var/tmp/stranger" {
			t.Errorf("/tmp/rdzv-UID is a link to %q", got)
		}
		b.sshd("reset")
	})
	t.Run("login files", func(t *testing.T) {
		began := time.Now()
		if _, code := ssh(t, "waits@node2", "true"); code != 0 || time.Since(began) < 3*time.Second {
			t.Errorf("waits: exit code %d after %v", code, time.Since(began))
		}
		if _, code := run(t, "timeout", "2", "ssh", "leaves@node2", "true"); code != 124 {
			t.Errorf("leaves: exit code %d, want that of timeout, because a process has the output", code)
		}
		for _, account := range []string{"reads", "execs"} { // with a stdin that stays open
			got, _ := run(t, "sh", "-c", "sleep 3 | timeout 2 ssh "+account+"@node2 echo it runs")
			if got != "" {
				t.Errorf("%s: %q, want no answer", account, got)
			}
		}
		b.sshd("reset")
	})
	t.Run("left", func(t *testing.T) {
		b.checkLeft(t)
		_, _ = ssh(t, "you@node2", "touch file /tmp/file; setsid sleep 1000 >/dev/null 2>&1 &")
		left := b.sshd("left")
		for _, want := range []string{"node2: file /home/you/file\n", "node2: file /tmp/file\n", ": sleep 1000"} {
			if !strings.Contains(left, want) {
				t.Errorf("left are %q, want %q", left, want)
			}
		}
		b.sshd("reset")
		b.checkLeft(t)
	})
	t.Run("faults", func(t *testing.T) {
		for name, fault := range map[string]func(){
			"frozen":    func() { b.sshd("freeze", "2") },
			"power off": func() { b.sshd("off", "2") },
			"cable cut": func() { b.hosts("cut", "2") },
		} {
			fault()
			if got, code := run(t, "timeout", "2", "ssh", "node2", "true"); code == 0 {
				t.Errorf("%s: ssh still works: %q", name, got)
			}
			b.sshd("reset")
			if got, code := ssh(t, "node2", "true"); code != 0 {
				t.Errorf("%s: ssh does not work after reset: %q", name, got)
			}
		}
	})
	t.Run("Open MPI", func(t *testing.T) {
		b.write(1, "/home/you/hosts", "node1 slots=2\nnode2 slots=2\n")
		got, code := run(t, mpirun, "--hostfile", "hosts", "--bind-to", "none", "-mca",
			"plm_rsh_agent", "ssh", "-np", "4", "hostname")
		if n := strings.Count(got, "node1") + strings.Count(got, "node2"); code != 0 || n < 4 {
			t.Errorf("mpirun prints %q, exit code %d", got, code)
		}
		b.root(1, "rm /home/you/hosts")
		b.checkLeft(t)
	})
}

// Hosts that share a home directory see each other's files; 8 of them are there within a test.
func TestSSHBedShared(t *testing.T) {
	t.Parallel()
	b := newSSHBed(t, 8, "--plain", "--shared")
	p := b.newPlace(t)
	for host := 2; host <= b.n; host++ {
		p.start(b.as(1, "you", "ssh", fmt.Sprint("node", host), "hostname >> names; id -un")...).checkCode(0)
	}
	if got := len(strings.Fields(b.root(1, "cat /home/you/names; rm /home/you/names"))); got != 7 {
		t.Errorf("the shared home directory has %d names, want 7", got)
	}
	b.checkLeft(t)
}
