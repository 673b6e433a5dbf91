package options

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/envmap"
	"rdzv/rdzv/agent"
)

// readOptions reads flags as exec does.
func readOptions(env envmap.Env, args ...string) (*Options, []string, error) {
	o := New()
	rest, err := flags.Parse(o.ExecFlags(), args, env)
	if err == nil {
		err = o.Check(env)
	}
	return o, rest, err
}

// A flag overrides its variable, and the variable the default.
func TestFlagOverVariableOverDefault(t *testing.T) {
	env := envmap.Env{
		"RDZV_GRACE": "3s", "RDZV_NODES": "4", "RDZV_SET": "A={rank}\nB=x y\n",
		"RDZV_NET":   "eth0,!eth1",
		"RDZV_QUIET": "1", "RDZV_STORE": "",
	}
	args := []string{"--nodes", "2", "--net", "10.0.0.0/8", "--", "prog", "--nodes", "7"}
	o, rest, err := readOptions(env, args...)
	if err != nil {
		t.Fatal(err)
	}
	got := o.Settings
	want := agent.Config{
		Grace: 3 * time.Second, Nodes: 2, JoinTimeout: 10 * time.Minute,
		Set: []string{"A={rank}", "B=x y"}, Networks: []string{"10.0.0.0/8"},
	}
	got = agent.Config{Grace: got.Grace, Nodes: got.Nodes, JoinTimeout: got.JoinTimeout,
		Store: got.Store, Set: got.Set, Networks: got.Networks}
	if !o.Output.Quiet {
		t.Error("RDZV_QUIET=1 does not set --quiet")
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
	if program := args[5:]; !slices.Equal(rest, program) {
		t.Errorf("the program is %q, want %q", rest, program)
	}
}

// torchrun's flags set those of exec that mean the same; they have no variables of their own.
func TestTorchrunFlags(t *testing.T) {
	env := envmap.Env{"RDZV_NNODES": "7", "RDZV_STANDALONE": "true", "RDZV_MASTER_ADDR": "node9"}
	for _, c := range []struct {
		args string
		want agent.Config
	}{
		{"--nnodes 2 --nproc_per_node=4", agent.Config{Nodes: 2, ProcsPerNode: "4"}},
		{"--nnodes=2 --nproc-per-node auto", agent.Config{Nodes: 2, ProcsPerNode: "auto"}},
		{"--master_addr node1 --master_port 1234", agent.Config{Store: "node1", MasterPort: 1234}},
		{"--master-addr=node1 --master-port=1234", agent.Config{Store: "node1", MasterPort: 1234}},
		{"--rdzv_id a --nnodes 3 --standalone", agent.Config{Job: "a", Nodes: 1}},
		{"--rdzv-id=a", agent.Config{Job: "a"}},
		{"--nnodes 4 --node_rank 3", agent.Config{Nodes: 4, NodeRank: new(3)}},
		{"--nnodes 2:4", agent.Config{MinNodes: 2, Nodes: 4}},
		{"--nnodes 2:4 --nodes 3:3", agent.Config{Nodes: 3}},
	} {
		o, _, err := readOptions(env, strings.Fields(c.args)...)
		if err != nil {
			t.Fatal(err)
		}
		got := o.Settings
		got = agent.Config{
			Nodes: got.Nodes, ProcsPerNode: got.ProcsPerNode, Store: got.Store,
			MasterPort: got.MasterPort, Job: got.Job, NodeRank: got.NodeRank, MinNodes: got.MinNodes,
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: read %+v\nwant %+v", c.args, got, c.want)
		}
	}
}

func TestPortRange(t *testing.T) {
	for _, c := range []struct {
		text   string
		lo, hi int
	}{
		{"29600-29999", 29600, 29999}, {"1-65535", 1, 65535}, {"7-7", 7, 7},
		{"", 0, 0}, {"80", 0, 0}, {"0-0", 0, 0}, {"80-", 0, 0}, {"0-5", 0, 0}, {"5-4", 0, 0}, {"1-65536", 0, 0},
		{"a-b", 0, 0}, {"1-2-3", 0, 0},
		{"-5", 0, 0},
	} {
		o, _, err := readOptions(nil, "--port-range="+c.text)
		got := o.Settings
		if (err == nil) != (c.lo != 0) || err == nil && (got.PortLow != c.lo || got.PortHigh != c.hi) {
			t.Errorf("--port-range %q: %d, %d, %v; want %d, %d", c.text, got.PortLow, got.PortHigh, err,
				c.lo, c.hi)
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
		_, _, err := readOptions(envmap.Env{"RDZV_GRACE": grace}, strings.Split(args, " ")...)
		if err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Errorf("%q: error with the message %q, want some text", args, err.Error())
		}
	})
}

// How often a job may be restarted follows from its spares, or from its least number of nodes, unless
// that is given.
func TestMostRestarts(t *testing.T) {
	for args, want := range map[string]int{
		"": 0, "--spares 2": 2, "--spares 2 --max-restarts 5": 5,
		"--nodes 2:5": 3, "--nodes 2:5 --max-restarts 1": 1,
	} {
		o, _, err := readOptions(nil, strings.Fields(args)...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
		} else if got := o.Settings.Restarts.Max; got != want {
			t.Errorf("%s: %d restarts, want %d", args, got, want)
		}
	}
}

// Port 0 of torchrun's endpoint is any port.
func TestEndpointWithAnyPort(t *testing.T) {
	for endpoint, want := range map[string]string{
		"localhost:0": "localhost", "node1:29400": "node1:29400", "node1": "node1",
	} {
		o, _, err := readOptions(nil, "--rdzv-endpoint", endpoint)
		if err != nil {
			t.Errorf("%s: %v", endpoint, err)
		} else if got := o.Settings.Store; got != want {
			t.Errorf("%s: store %q, want %q", endpoint, got, want)
		}
	}
}
