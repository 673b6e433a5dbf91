package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Logins of every kind: shells, login files, home directories, and hosts that cannot be used, of which
// one report has all.
func TestHostsLogin(t *testing.T) {
	t.Parallel()
	b := newSSHBed(t, 10)
	b.install(1)
	for _, row := range []hostsRow{
		accountsRow("login shells", "dash", "fish", "ksh", "mksh", "rbash", "tcsh", "zsh", "ash"),
		accountsRow("login files", "prints", "waits", "leaves", "rc"),
		accountsRow("homes", "full", "readonly", "noexec", "nohome", "tools"),
		{name: "hosts that cannot be used", code: 125, hides: []string{"rank "},
			hosts: "node1:1,locked@node2:1,stranger:1,nosuch:1,forced@node4:1,nologin@node5:1,node6:1,arm@node7:1,node8:1",
			prepare: func(*hostsRun) {
				b.root(1, "echo 10.77.0.13 stranger >> /etc/hosts")
				b.hosts("cut", "6")
				b.root(8, "echo maintenance until Monday > /etc/nologin")
			},
			after: func(r *hostsRun) {
				b.root(1, "sed '/stranger/d' /etc/hosts > /tmp/h; cat /tmp/h > /etc/hosts; rm /tmp/h")
				b.root(8, "rm /etc/nologin")
				for _, host := range []string{"node2", "stranger", "nosuch", "node4", "node5", "node6", "node7", "node8"} {
					if len(r.job.linesWith("cannot ", host)) == 0 {
						r.t.Errorf("the report does not name %s", host)
					}
				}
			},
			shows: []string{"Permission denied (publickey", "ssh-copy-id locked@node2", "Host key verification failed",
				"Could not resolve hostname nosuch", "this account runs backups", "This account is currently not available",
				"timed out", "aarch64", "maintenance until Monday"}},
		{name: "another architecture alone", hosts: "node1:1,arm@node2:1", code: 125,
			shows: []string{"node2", "aarch64"}, hides: []string{"rank ", "cannot read what to start"}},
		{name: "a planted link", hosts: "node1:1,planted@node2:1", code: 125, hides: []string{"rank "},
			shows: []string{"node2"},
			after: func(r *hostsRun) {
				if text := b.root(2, "ls -A /var/tmp/stranger"); text != "" {
					r.t.Errorf("files were written through the link: %q", text)
				}
			}},
		{name: "one host twice", hosts: "node1:1,node2:1,node2:1", code: 125, hides: []string{"rank "},
			shows: []string{"node2"}},
		{name: "one host under two names", hosts: "node1:1,node2:1,six2:1", code: 125, hides: []string{"rank "},
			shows: []string{"node2", "six2"}},
		{name: "this host under another name", hosts: "node1:1,six1:1", code: 125, hides: []string{"rank "},
			shows: []string{"six1"}},
		{name: "a name that begins with -", hosts: "node1:1,-oProxyCommand=x:1", code: 125,
			hides: []string{"rank "}, shows: []string{"-oProxyCommand"}},
		{name: "with --nodes", hosts: "node1:1,node2:1", flags: []string{"--nodes", "2"}, code: 125,
			hides: []string{"rank "}, shows: []string{"--nodes"}},
		{name: "with --store", hosts: "node1:1,node2:1", flags: []string{"--store", "node1"}, code: 125,
			hides: []string{"rank "}, shows: []string{"--store"}},
		{name: "with RDZV_TOKEN", hosts: "node1:1,node2:1", flags: []string{"RDZV_TOKEN=0123456789abcdef0123"},
			code: 125, hides: []string{"rank "}, shows: []string{"RDZV_TOKEN"}},
		{name: "under mpirun", hosts: "node1:1,node2:1", code: 125, hides: []string{"rank "},
			flags: []string{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=0",
				"OMPI_COMM_WORLD_LOCAL_SIZE=1", "OMPI_COMM_WORLD_NODE_RANK=0"}},
		{name: "an allocation of Slurm", hosts: "node1:1,node2:1", code: 125, hides: []string{"rank "},
			flags: []string{"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=node[1-2]", "SLURM_NNODES=2", "SLURM_JOB_NUM_NODES=2"}},
		{name: "login files that read or start another shell", long: true, code: 125, within: 40 * time.Second,
			hosts: "node1:1,reads@node2:1,execs@node3:1", hides: []string{"rank "},
			shows: []string{"node2: no answer for 25 s", "node3: no answer for 25 s", "ssh reads@node2 true"}},
		{name: "a host that freezes after login", long: true, hosts: "node1:1,waits@node2:1", code: 125,
			hides: []string{"rank "}, shows: []string{"node2"},
			during: func(r *hostsRun) {
				b.waitForProcess(r.t, "sleep 3")
				b.sshd("freeze", "2")
				_ = r.job.code()
				b.sshd("thaw", "2")
			}},
	} {
		row.run(t, b)
	}
}

// accountsRow is a job with the starter's host first, and then each account on a host of its own.
func accountsRow(name string, accounts ...string) hostsRow {
	hosts, ranks := []string{"node1:1"}, []string{"node1"}
	for i, account := range accounts {
		hosts = append(hosts, fmt.Sprintf("%s@node%d:1", account, i+2))
		ranks = append(ranks, fmt.Sprintf("%s@node%d", account, i+2))
	}
	return hostsRow{name: name, hosts: strings.Join(hosts, ","), shows: eachRank(ranks...)}
}
