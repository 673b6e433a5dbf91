package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// What ranks on other hosts write arrives at the starter, what it reads goes to rank 0, and what is
// missing on a host is said before a worker starts.
func TestHostsOutput(t *testing.T) {
	t.Parallel()
	b := newSSHBed(t, 2, "--plain")
	b.install(1)
	const two = "node1:2,node2:2"
	sh := func(script string) []string { return []string{"sh", "-c", script} }
	for _, row := range []hostsRow{
		{name: "whole lines", hosts: two,
			program: sh(`line=$(printf '%2000s' | tr ' ' $RANK); i=0; while [ $i -lt 300 ]; do echo $line; i=$((i+1)); done`),
			after:   func(r *hostsRun) { r.wholeLines(4 * 300) }},
		{name: "a part of a line", hosts: "node2:1", program: sh("printf ' 10%%'; sleep 1000"),
			shell: `RDZV 2>&1 | { head -c 4; echo " is there"; }; exit 3`, code: 3, shows: []string{" 10% is there"},
			during: func(r *hostsRun) {
				r.job.waitFor("is there")
				b.signalOn(r.t, r.starter(), intr)
			}},
		{name: "tqdm", hosts: "node1:1,node2:1",
			program: []string{"/usr/bin/python3", "-c", "import sys, time\nfor i in range(5):\n" +
				"    sys.stderr.write(f'\\r{i * 25}% of rank'); sys.stderr.flush(); time.sleep(0.3)\nsys.stderr.write('\\n')"},
			shell: `RDZV 2>&1 >/dev/null | tr '\r' '\n'`, shows: []string{"0% of rank", "75% of rank", "100% of rank"}},
		{name: "100 MB", hosts: "node1:1,node2:1", shell: "RDZV | wc -lc", shows: []string{"1000000 100000000"},
			program: sh("[ $RANK = 1 ] || exit 0; yes " + strings.Repeat("x", 99) + " | head -n 1000000")},
		{name: "no newline at the end", hosts: "node1:1,node2:1", code: 5, shows: []string{"the end"},
			program: sh("[ $RANK = 1 ] || exec sleep 1000; printf 'the end'; exit 5")},
		{name: "bytes", hosts: "node2:1", shell: "RDZV | od -An -c | tr -d ' '", shows: []string{`\00013771\n\0`},
			program: sh(`printf '\0\001\3771\n\0'`)},
		{name: "stdout and stderr", hosts: "node2:1", shell: "{ RDZV 2>/dev/null | sed 's/^/stdout has /'; }",
			program: sh("echo this; echo that >&2"), shows: []string{"stdout has this"}, hides: []string{"that"}},
		{name: "stdin of rank 0", hosts: "node2:1,node1:1", shell: "printf 'one\\ntwo' | RDZV",
			program: sh(`echo rank $RANK reads "$(tr '\n' -)"`), shows: []string{"rank 0 reads one-two", "rank 1 reads "},
			hides: []string{"rank 1 reads one"}},
		{name: "a large stdin", hosts: "node2:1", program: sh("wc -c"), shell: "head -c 20000000 /dev/zero | RDZV",
			shows: []string{"20000000"}},
		{name: "--tag", hosts: "node1:1,node2:1", flags: []string{"--tag"},
			shows: []string{"[0 node1] rank 0 of 2", "[1 node2] rank 1 of 2"}},
		{name: "--show", hosts: "node1:1,node2:1", flags: []string{"--show", "1"}, shows: []string{"rank 1 of 2"},
			hides: []string{"rank 0 of 2"}},
		{name: "--log-dir", hosts: "node1:1,node2:1", flags: []string{"--log-dir", "logs"}, shows: eachRank("node1", "node2"),
			after: func(r *hostsRun) {
				if text := b.root(2, "cat /home/you/logs/latest/*/rank-00001.log; rm -r /home/you/logs"); text != "rank 1 of 2 is you on node2\n" {
					r.t.Errorf("the log on node2 is %q", text)
				}
				b.root(1, "rm -r /home/you/logs")
			}},
		{name: "--redirects", hosts: "node1:1,node2:1", flags: []string{"--redirects", "3"}, hides: []string{"rank 1 of 2"},
			shows: []string{"the output of each rank on node1 is in /tmp/rdzv-logs-", "the output of each rank on node2 is in /tmp/rdzv-logs-"},
			after: func(r *hostsRun) {
				b.root(1, "rm -r /tmp/rdzv-logs-*")
				if text := b.root(2, "cat /tmp/rdzv-logs-*/latest/*/*; rm -r /tmp/rdzv-logs-*"); !strings.Contains(text, "rank 1 of 2 is you on node2") {
					r.t.Errorf("the log on node2 is %q", text)
				}
			}},
		{name: "a failure is reported once", hosts: two, code: 9,
			program: sh(`[ $RANK = 3 ] || exec sleep 1000; sleep 1; echo KeyError: 7 >&2; exit 9`),
			after: func(r *hostsRun) {
				seen := map[string]int{}
				for _, line := range r.job.linesWith("rdzv: ") {
					if seen[line]++; seen[line] == 2 {
						r.t.Errorf("twice: %q", line)
					}
				}
				r.once("4 ranks on 2 nodes")
			}},
		{name: "the program is missing on one host", hosts: "node1:1,node2:1", program: []string{"/media/program"}, code: 127,
			prepare: func(*hostsRun) {
				b.root(1, "printf '#!/bin/sh\necho it runs\n' > /media/program; chmod 755 /media/program")
			},
			shows: []string{"/media/program", "node2"}, hides: []string{"it runs"}},
		{name: "the directory is missing on one host", hosts: "node1:1,node2:1", code: 121, hides: []string{"rank "},
			shell: "mkdir work; cd work; RDZV; code=$?; cd; rmdir work; exit $code",
			shows: []string{"/home/you/work", "node2"}},
		{name: "the virtual environment is missing on one host", hosts: "node1:1,node2:1", code: 121,
			flags: []string{"VIRTUAL_ENV=/media/venv", "PATH=/media/venv/bin:/usr/bin:/bin"},
			prepare: func(*hostsRun) {
				b.root(1, "mkdir -p /media/venv/bin; ln -sf /usr/bin/python3 /media/venv/bin/python3")
			},
			program: []string{"python3", "-c", "print('it runs')"}, shows: []string{"/media/venv", "node2"},
			hides: []string{"it runs"}},
		{name: "variables", hosts: "node1:1,node2:1",
			flags:   []string{"NCCL_DEBUG=INFO", "OMP_NUM_THREADS=3", "SECRET=1", "OTHER=a b", "--export", "OTHER"},
			program: sh(`echo "rank $RANK has $NCCL_DEBUG $OMP_NUM_THREADS <$SECRET> $OTHER in $PWD"`),
			shows:   []string{"rank 1 has INFO 3 <> a b in /home/you"}},
		{name: "PATH", hosts: "node2:1", flags: []string{"PATH=/media/first:/usr/bin:/bin"}, program: sh("echo PATH is $PATH"),
			shows: []string{"PATH is /media/first:/usr/bin:/bin:"}},
	} {
		row.run(t, b)
	}
	t.Run("check", func(t *testing.T) {
		p := b.newPlace(t)
		for _, c := range []struct {
			hosts string
			code  int
			shows []string
		}{
			{"node1:1,node2:1", 0, []string{"node1", "node2"}},
			{"node1:1,nosuch:1", 1, []string{"cannot reach nosuch"}},
		} {
			check := p.start(b.as(1, "you", rdzvOnHost, "check", "--hosts", c.hosts)...)
			if code := check.code(); code != c.code {
				t.Errorf("check --hosts %s ended with exit code %d, want %d", c.hosts, code, c.code)
			}
			for _, text := range c.shows {
				if len(check.linesWith(text)) == 0 {
					t.Errorf("check --hosts %s does not print %q", c.hosts, text)
				}
			}
		}
		b.checkLeft(t)
	})
}

// PyTorch trains on hosts that have only torch and the program.
func TestHostsTrain(t *testing.T) {
	t.Parallel()
	n := 2
	if *wholeMatrix {
		n = 8
	}
	b := newSSHBed(t, n, "--plain")
	b.install(1)
	for _, name := range []string{"train.py", "spirals.csv"} {
		text, err := os.ReadFile("../examples/" + name)
		if err != nil {
			t.Fatal(err)
		}
		b.write(1, "/srv/"+name, string(text))
	}
	var hosts, shows []string
	for host := range n {
		hosts = append(hosts, fmt.Sprintf("node%d:%d", host+1, 4/min(n, 4)))
	}
	ranks := n * (4 / min(n, 4))
	shows = append(shows, fmt.Sprintf("the same on all %d ranks", ranks))
	row := hostsRow{name: fmt.Sprint(n, " hosts"), hosts: strings.Join(hosts, ","), shows: shows,
		program: []string{python, "/srv/train.py", "--epochs", "1", "--snapshot", "/tmp/snapshot.pt"}}
	row.after = func(*hostsRun) { b.root(1, "rm /tmp/snapshot.pt") }
	row.run(t, b)
}

// wholeLines checks that n lines arrived, each with 2000 times the digit of a rank.
func (r *hostsRun) wholeLines(n int) {
	r.t.Helper()
	lines, _ := r.job.output()
	for _, line := range lines {
		if strings.HasPrefix(line, "rdzv: ") {
			continue
		}
		if n--; len(line) != 2000 || strings.Trim(line, line[:1]) != "" || !strings.Contains("0123", line[:1]) {
			r.t.Errorf("a line has %d bytes: %.200q", len(line), line)
			return
		}
	}
	if n != 0 {
		r.t.Errorf("%d lines are missing", n)
	}
}

// starter is the starter's process below a shell.
func (r *hostsRun) starter() int {
	r.t.Helper()
	return r.bed.waitForProcess(r.t, rdzvOnHost+" exec --hosts")
}
