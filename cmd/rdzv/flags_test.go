package main

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rdzv/envmap"
)

// readOptions reads flags as exec does.
func readOptions(env envmap.Env, args ...string) (*options, []string, bool, error) {
	o := newOptions()
	rest, dashes, err := parse(o.execFlags(), args, env)
	if err == nil {
		err = o.check(env)
	}
	return o, rest, dashes, err
}

// A flag overrides its variable, and the variable the default.
func TestFlagOverVariableOverDefault(t *testing.T) {
	env := envmap.Env{
		"RDZV_GRACE": "3s", "RDZV_NODES": "4", "RDZV_SET": "A={rank}\nB=x y\n",
		"RDZV_NET":   "eth0,!eth1",
		"RDZV_QUIET": "1", "RDZV_STORE": "",
	}
	args := []string{"--nodes", "2", "--net", "10.0.0.0/8", "--", "prog", "--nodes", "7"}
	o, rest, dashes, err := readOptions(env, args...)
	fatalIf(t, err)
	got := options{
		grace: o.grace, nodes: o.nodes, quiet: o.quiet, joinTimeout: o.joinTimeout, store: o.store,
		set: o.set, net: o.net,
	}
	want := options{
		grace: 3 * time.Second, nodes: 2, quiet: true, joinTimeout: 10 * time.Minute,
		set: []string{"A={rank}", "B=x y"}, net: []string{"10.0.0.0/8"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
	if program := args[5:]; !dashes || !slices.Equal(rest, program) {
		t.Errorf("the program is %q, after --: %t; want %q after --", rest, dashes, program)
	}
}

// torchrun's flags set those of exec that mean the same; they have no variables of their own.
func TestTorchrunFlags(t *testing.T) {
	env := envmap.Env{"RDZV_NNODES": "7", "RDZV_STANDALONE": "true", "RDZV_MASTER_ADDR": "node9"}
	for _, c := range []struct {
		args string
		want options
	}{
		{"--nnodes 2 --nproc_per_node=4", options{nodes: 2, procs: "4"}},
		{"--nnodes=2 --nproc-per-node auto", options{nodes: 2, procs: "auto"}},
		{"--master_addr node1 --master_port 1234", options{store: "node1", masterPort: 1234}},
		{"--master-addr=node1 --master-port=1234", options{store: "node1", masterPort: 1234}},
		{"--rdzv_id a --nnodes 3 --standalone", options{job: "a", nodes: 1}},
		{"--rdzv-id=a", options{job: "a"}},
		{"--nnodes 4 --node_rank 3", options{nodes: 4, nodeRank: 3}},
		{"--nnodes 2:4", options{minNodes: 2, nodes: 4}},
		{"--nnodes 2:4 --nodes 3:3", options{nodes: 3}},
	} {
		o, _, _, err := readOptions(env, strings.Fields(c.args)...)
		fatalIf(t, err)
		got := options{
			nodes: o.nodes, procs: o.procs, store: o.store, masterPort: o.masterPort, job: o.job,
			nodeRank: o.nodeRank, minNodes: o.minNodes,
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: read %+v\nwant %+v", c.args, got, c.want)
		}
	}
}

// The fields that package agent names when it rejects a configuration have flags.
func TestFlagsOfFields(t *testing.T) {
	for _, field := range []string{
		"Nodes", "MinNodes", "NodeRank", "Job", "PortLow", "Etcd", "Insecure", "TokenFile", "Export",
		"PeerTimeout", "StoreTimeout", "JoinTimeout", "LastCall", "Grace", "ExitTimeout", "HeadStart",
		"Spares", "ShareSignals", "Capture", "NoCapture", "Show", "MasterPort", "Store",
	} {
		checkFlagOf(t, field)
	}
}

func TestPortRange(t *testing.T) {
	for _, c := range []struct {
		text   string
		lo, hi int
	}{
		{"29600-29999", 29600, 29999}, {"1-65535", 1, 65535}, {"7-7", 7, 7},
		{"", 0, 0}, {"80", 0, 0}, {"80-", 0, 0}, {"0-5", 0, 0}, {"5-4", 0, 0}, {"1-65536", 0, 0},
		{"a-b", 0, 0}, {"1-2-3", 0, 0},
		{"-5", 0, 0},
	} {
		o := options{ports: c.text, flags: newFlags("exec")}
		err := o.readPorts()
		if o.portLo != c.lo || o.portHi != c.hi || (err == nil) != (c.lo != 0) {
			t.Errorf("--port-range %q: %d, %d, %v; want %d, %d", c.text, o.portLo, o.portHi, err, c.lo, c.hi)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"exec", "env", "get-rank", "version"}
	for _, c := range [][2]string{
		{"exce", "exec"}, {"exe", "exec"}, {"getrank", "get-rank"}, {"versoin", "version"},
		{"evn", "env"}, {"e", ""}, {"python3", ""}, {"", ""},
	} {
		if got := nearest(c[0], words); got != c[1] {
			t.Errorf("nearest(%q) = %q, want %q", c[0], got, c[1])
		}
	}
}

// Any arguments can be read without a panic, and an error has a message.
func FuzzParse(f *testing.F) {
	for _, args := range []string{
		"--nodes 2 -- x", "-q -v", "--set A={rank} --grace 1h", "-np 4", "--=x", "---",
		"--job=\x00",
	} {
		f.Add(args, "5s")
	}
	f.Fuzz(func(t *testing.T, args, grace string) {
		_, _, _, err := readOptions(envmap.Env{"RDZV_GRACE": grace}, strings.Split(args, " ")...)
		if err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Errorf("%q: error with the message %q, want some text", args, err.Error())
		}
	})
}

// A flag can be given in the environment if the help of its command shows the variable, and only
// then. The overview says so.
func TestVariablesOfFlags(t *testing.T) {
	if strings.Contains(overview, "Every flag can be given") {
		t.Error("the overview says that every flag can be given in the environment")
	}
	values := map[string]string{"bool": "true", "int": "3", "nodes": "3", "duration": "3s",
		"capture": "never"}
	for _, c := range commands() {
		for _, r := range c.rows() {
			f := define(newFlags(c.name), c.flags)
			flag := f.Lookup(r.name())
			value := cmp.Or(values[flag.Value.Type()], "text")
			if _, _, err := parse(f, nil, envmap.Env{variable(r.name()): value}); err != nil {
				t.Errorf("rdzv %s with %s=%s: %v", c.name, variable(r.name()), value, err)
			}
			shown := strings.Contains(c.help()+"\n", " "+variable(r.name())+"\n")
			for _, g := range c.flags {
				shown = shown || g.brief && slices.ContainsFunc(g.rows, func(other flagRow) bool {
					return other.name() == r.name() // the help of exec shows it
				})
			}
			if flag.Changed != shown {
				t.Errorf("rdzv %s --%s: taken from %s: %t, shown in the help: %t", c.name, r.name(),
					variable(r.name()), flag.Changed, shown)
			}
		}
	}
}
