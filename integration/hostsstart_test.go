package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Where the starter runs, and how hosts are named: of three hosts the third has no sshd.
func TestHostsStart(t *testing.T) {
	t.Parallel()
	b := newSSHBed(t, 3, "--plain", "--without", "3")
	b.install(1, 2, 3)
	for _, row := range []hostsRow{
		{name: "on the first host", hosts: "node1:2,node2:2", shows: eachRank("node1", "node1", "node2", "node2"),
			after: func(r *hostsRun) { r.once("4 ranks on 2 nodes") }},
		{name: "on the second", hosts: "node2:1,node1:2", shows: eachRank("node2", "node1", "node1")},
		{name: "on none", from: 3, hosts: "node1:1,node2:1", shows: eachRank("node1", "node2")},
		{name: "on a host without sshd", from: 3, hosts: "node3:1,node1:2",
			shows: eachRank("node3", "node1", "node1")},
		{name: "on a host without sshd that is not the first", from: 3, hosts: "node1:1,node3:1",
			shows: eachRank("node1", "node3")},
		{name: "on the only host", hosts: "node1:2", shows: eachRank("node1", "node1")},
		{name: "the only host is another", hosts: "node2:2", shows: eachRank("node2", "node2")},
		{name: "no numbers", hosts: "node1,node2", flags: []string{"--nproc-per-node", "2"},
			shows: eachRank("node1", "node1", "node2", "node2")},
		{name: "-H", flags: []string{"-H", "node1:1,node2:1"}, shows: eachRank("node1", "node2")},
		{name: "another user", hosts: "node1:1,ada@node2:1", shows: eachRank("node1", "ada@node2")},
		{name: "host file of Open MPI", prepare: hostFile("# ours\nada@node1 slots=1 max-slots=4\n\nnode2 slots=2 # two\n"),
			flags: []string{"--hostfile", "/srv/hostfile"}, shows: eachRank("ada@node1", "node2", "node2")},
		{name: "host file of MPICH", prepare: hostFile("node2:1\n# node3:7\nnode1:2\n"),
			flags: []string{"--hostfile", "/srv/hostfile"}, shows: eachRank("node2", "node1", "node1")},
		{name: "IPv6", from: 3, hosts: "[fd77::11]:1,[fd77::12]:1", shows: eachRank("node1", "node2")},
		{name: "a name of IPv6", hosts: "node1:1,six2:1", shows: eachRank("node1", "node2")},
		{name: "own names resolve to 127.0.1.1", hosts: "node1:1,node2:2",
			prepare: func(r *hostsRun) { r.debianNames() }, after: func(r *hostsRun) { r.restoreNames() },
			program: []string{"sh", "-c", "echo rank $RANK of $WORLD_SIZE, master $MASTER_ADDR"},
			shows:   []string{"rank 0 of 3, master 10.77.0.11", "rank 2 of 3, master 10.77.0.11"}},
		{name: "the same from a third host", from: 3, hosts: "node2:1,node1:2",
			prepare: func(r *hostsRun) { r.debianNames() }, after: func(r *hostsRun) { r.restoreNames() },
			program: []string{"sh", "-c", "echo rank $RANK of $WORLD_SIZE, master $MASTER_ADDR"},
			shows:   []string{"rank 0 of 3, master 10.77.0.12", "rank 2 of 3, master 10.77.0.12"}},
		{name: "names that only ssh's config has", from: 3, hosts: "gpu-a:1,gpu-b:1",
			prepare: sshConfig(3, "Host gpu-a\nHostName 10.77.0.11\nHost gpu-b\nHostName 10.77.0.12\nUser ada\n"),
			after:   withoutConfig(3), shows: eachRank("node1", "ada@node2")},
		{name: "options of the config that would break a session", hosts: "node1:1,node2:1",
			prepare: sshConfig(1, "Host node2\nRequestTTY force\nRemoteCommand top\nLocalForward 7777 node2:22\n"),
			after:   withoutConfig(1), shows: eachRank("node1", "node2")},
		{name: "a jump host", from: 3, hosts: "node2:1",
			prepare: sshConfig(3, "Host node2\nProxyJump node1\n"), after: withoutConfig(3),
			shows: eachRank("node2")},
		{name: "a master connection", hosts: "node1:1,node2:1",
			prepare: func(r *hostsRun) {
				sshConfig(1, "Host node2\nControlPath /home/you/.ssh/master\n")(r)
				r.p.start(b.as(1, "you", "ssh", "-M", "-N", "node2")...)
				r.waitFor("test -S /home/you/.ssh/master")
				b.root(2, "mv /etc/ssh/accepted/you /etc/ssh/accepted/not")
			},
			after: func(r *hostsRun) {
				b.root(2, "mv /etc/ssh/accepted/not /etc/ssh/accepted/you")
				r.p.start(b.as(1, "you", "ssh", "-O", "exit", "node2")...).checkCode(0)
				withoutConfig(1)(r)
			},
			shows: eachRank("node1", "node2")},
		{name: "--ssh", hosts: "node1:1,node2:1", flags: []string{"--ssh", "/srv/bin/shell"},
			prepare: func(*hostsRun) {
				b.root(1, `printf '#!/bin/sh\necho "$@" > /tmp/called\nexec ssh "$@"\n' > /srv/bin/shell && chmod 755 /srv/bin/shell`)
			},
			after: func(r *hostsRun) {
				if text := b.root(1, "cat /tmp/called; rm -f /tmp/called"); !strings.Contains(text, "node2") {
					r.t.Errorf("--ssh was called with %q", text)
				}
			},
			shows: eachRank("node1", "node2")},
		{name: "two jobs at once", hosts: "node1:1,node2:1", program: holdRank,
			during: func(r *hostsRun) {
				r.holds(2)
				other := hostsRow{hosts: "node2:2,node1:1"}
				second := r.p.start(b.as(1, "you", other.line()...)...)
				second.checkCode(0)
				for _, line := range eachRank("node2", "node2", "node1") {
					if len(second.linesWith(line)) == 0 {
						r.t.Errorf("the second job does not print %q", line)
					}
				}
				r.bed.signalOn(r.t, r.job.pid(), intr)
			}, code: 130},
		{name: "restarts", hosts: "node1:1,node2:1", flags: []string{"--max-restarts", "1"},
			program: []string{"sh", "-c", "echo attempt $TORCHELASTIC_RESTART_COUNT of rank $RANK; " +
				"[ $RANK$TORCHELASTIC_RESTART_COUNT != 10 ]"},
			shows: []string{"attempt 0 of rank 1", "attempt 1 of rank 0", "attempt 1 of rank 1"}},
	} {
		row.run(t, b)
	}
}

// A host that has the binary gets none again; a shared home directory gets one for all hosts.
func TestHostsSharedHome(t *testing.T) {
	t.Parallel()
	b := newSSHBed(t, 8, "--plain", "--shared")
	b.install(1)
	var hosts, ranks []string
	for host := 1; host <= b.n; host++ {
		hosts = append(hosts, fmt.Sprintf("node%d:1", host))
		ranks = append(ranks, fmt.Sprint("node", host))
	}
	cached := func() string {
		return b.root(1, "find /home/you/.cache/rdzv -type f -printf '%p %i %m\n'")
	}
	var first string
	row := hostsRow{name: "cold", hosts: strings.Join(hosts, ","), shows: eachRank(ranks...),
		after: func(r *hostsRun) {
			if first = cached(); strings.Count(first, "\n") != 1 {
				r.t.Errorf("the shared home directory has %q, want one binary", first)
			}
		}}
	row.run(t, b)
	row.name, row.after = "warm", func(r *hostsRun) {
		if now := cached(); now != first {
			r.t.Errorf("the binary was %q and is %q", first, now)
		}
	}
	row.run(t, b)
}

// 64 hosts, and 48 behind a jump host whose sshd refuses many logins at once, as it does by default.
func TestHostsMany(t *testing.T) {
	t.Parallel()
	if !*wholeMatrix {
		return
	}
	const n = 64
	b := newSSHBed(t, n, "--plain")
	b.install(1)
	list := func(first, last int) (string, []string) {
		var hosts, ranks []string
		for host := first; host <= last; host++ {
			hosts = append(hosts, fmt.Sprintf("node%d:1", host))
			ranks = append(ranks, fmt.Sprint("node", host))
		}
		return strings.Join(hosts, ","), eachRank(ranks...)
	}
	all, allRanks := list(1, n)
	behind, behindRanks := list(3, 50)
	hold := hostsRow{name: "64 hosts, Ctrl-C", hosts: all, program: holdRank, code: 130, within: time.Minute,
		during: func(r *hostsRun) { r.holds(n); r.bed.signalOn(r.t, -r.job.cmd.Process.Pid, intr) }}
	for _, row := range []hostsRow{
		{name: "64 hosts, cold", hosts: all, shows: allRanks, within: 90 * time.Second},
		{name: "64 hosts, warm", hosts: all, shows: allRanks, within: time.Minute},
		hold,
		{name: "48 hosts behind one", hosts: behind, shows: behindRanks, within: time.Minute,
			prepare: sshConfig(1, "Host node* !node2\nProxyJump node2\n"), after: withoutConfig(1)},
	} {
		row.run(t, b)
	}
}

// hostFile writes a host file for the starter.
func hostFile(text string) func(r *hostsRun) {
	return func(r *hostsRun) { r.bed.write(1, "/srv/hostfile", text) }
}

// sshConfig makes ssh's config of the user on a host, withoutConfig removes it.
func sshConfig(host int, text string) func(r *hostsRun) {
	return func(r *hostsRun) { r.bed.write(host, "/home/you/.ssh/config", text) }
}

func withoutConfig(host int) func(r *hostsRun) {
	return func(r *hostsRun) { r.bed.root(host, "rm -f /home/you/.ssh/config") }
}

// debianNames makes each host's own name that of 127.0.1.1, until restoreNames.
func (r *hostsRun) debianNames() {
	for host := 1; host <= r.bed.n; host++ {
		r.bed.root(host, `cp /etc/hosts /etc/hosts.before
			sed "s/^[0-9.]* $(hostname)\$/127.0.1.1 $(hostname)/" /etc/hosts.before > /etc/hosts
			grep -q '^127.0.1.1 node' /etc/hosts`)
	}
}

func (r *hostsRun) restoreNames() {
	for host := 1; host <= r.bed.n; host++ {
		r.bed.root(host, "cp /etc/hosts.before /etc/hosts")
	}
}

// waitFor waits until a shell command succeeds on the first host.
func (r *hostsRun) waitFor(condition string) {
	r.t.Helper()
	if !eventually(waitLimit, func() bool {
		return strings.Contains(r.bed.root(1, condition+" && echo it is || true"), "it is")
	}) {
		r.t.Fatalf("%q has not become true", condition)
	}
}
