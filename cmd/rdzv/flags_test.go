package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rdzv/envmap"
)

// readOptions reads flags as exec does.
func readOptions(env envmap.Env, args ...string) (*options, []string, bool, error) {
	o := &options{}
	f := newFlags("exec")
	o.define(f)
	o.defineExec(f)
	rest, dashes, err := parse(f, args, env)
	if err == nil {
		err = o.check()
	}
	return o, rest, dashes, err
}

// A flag wins over its variable, the variable over the default.
func TestFlagOverVariableOverDefault(t *testing.T) {
	env := envmap.Env{"RDZV_GRACE": "3s", "RDZV_NODES": "4", "RDZV_SET": "A={rank}\nB=x y\n", "RDZV_NET": "eth0,!eth1", "RDZV_QUIET": "1", "RDZV_STORE": ""}
	o, rest, dashes, err := readOptions(env, "--nodes", "2", "--net", "10.0.0.0/8", "--", "prog", "--nodes", "7")
	if err != nil {
		t.Fatal(err)
	}
	if o.grace != 3*time.Second || o.nodes != 2 || !o.quiet || o.joinTimeout != defaultJoinTimeout || o.store != "" {
		t.Errorf("grace %v, nodes %d, quiet %v, join timeout %v, store %q", o.grace, o.nodes, o.quiet, o.joinTimeout, o.store)
	}
	if !slices.Equal(o.set, []string{"A={rank}", "B=x y"}) || !slices.Equal(o.net, []string{"10.0.0.0/8"}) {
		t.Errorf("set %q, net %q", o.set, o.net)
	}
	if !dashes || !slices.Equal(rest, []string{"prog", "--nodes", "7"}) {
		t.Errorf("the program is %q, dashes %v", rest, dashes)
	}
}

// Every problem is on a line of its own.
func TestProblemsOnLines(t *testing.T) {
	_, _, _, err := readOptions(nil, "--nodes", "0", "--grace", "-1s", "--master-port", "-1", "--job", "a\nb", "--", "x")
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 4 {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "cannot run exec: --") {
			t.Errorf("a line is %q", line)
		}
	}
	if join(nil) != nil || join([]error{nil, nil}) != nil {
		t.Error("no problems are an error")
	}
}

func TestPortRange(t *testing.T) {
	for _, c := range []struct {
		text   string
		lo, hi int
	}{
		{"29600-29999", 29600, 29999}, {"1-65535", 1, 65535}, {"7", 7, 7},
		{"", 0, 0}, {"0-5", 0, 0}, {"5-4", 0, 0}, {"1-65536", 0, 0}, {"a-b", 0, 0}, {"1-2-3", 0, 0}, {"-5", 0, 0},
	} {
		lo, hi, err := portRange(c.text)
		if lo != c.lo || hi != c.hi || (err == nil) != (c.lo != 0) {
			t.Errorf("%q is %d to %d, %v; want %d to %d", c.text, lo, hi, err, c.lo, c.hi)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"exec", "env", "get-rank", "version"}
	for _, c := range [][2]string{{"exce", "exec"}, {"exe", "exec"}, {"getrank", "get-rank"}, {"versoin", "version"}, {"evn", "env"}, {"e", ""}, {"python3", ""}, {"", ""}} {
		if got := nearest(c[0], words); got != c[1] {
			t.Errorf("nearest to %q is %q, want %q", c[0], got, c[1])
		}
	}
}

// Whatever the arguments, reading them ends, and an error is lines that can be said.
func FuzzParse(f *testing.F) {
	for _, args := range []string{"--nodes 2 -- x", "-q -v", "--set A={rank} --grace 1h", "-np 4", "--=x", "---", "--job=\x00"} {
		f.Add(args, "5s")
	}
	f.Fuzz(func(t *testing.T, args, grace string) {
		_, _, _, err := readOptions(envmap.Env{"RDZV_GRACE": grace}, strings.Split(args, " ")...)
		if err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Errorf("%q: an error without words", args)
		}
	})
}
