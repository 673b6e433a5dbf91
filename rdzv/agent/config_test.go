package agent_test

import (
	"strings"
	"testing"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/etcd"
	"rdzv/rdzv/presence"
)

// An invalid value is rejected before anything is started; the error has the value.
func TestConfigRejected(t *testing.T) {
	for _, c := range []struct {
		change func(*agent.Config)
		want   string
	}{
		{func(c *agent.Config) { c.Program = nil }, "Program is empty"},
		{func(c *agent.Config) { c.Launcher = "psexec" }, `"psexec"`},
		{func(c *agent.Config) { c.Nodes = -1 }, "--nodes -1: must be 1 to "},
		{func(c *agent.Config) { c.ProcsPerNode = "many" }, `"many"`},
		{func(c *agent.Config) { c.ProcsPerNode = "-1" }, "-1"},
		{
			func(c *agent.Config) { c.Job = strings.Repeat("x", agent.MaxJob+1) },
			`--job "xxxxxxxxxxxxxxxx...": must not be longer than 200 bytes`,
		},
		{func(c *agent.Config) { c.Job = "a\nb" }, `"a\nb"`},
		{func(c *agent.Config) { c.Job = ".." }, `--job "..": must not have ".." as a part`},
		{func(c *agent.Config) { c.Store = "node1:port" }, `"node1:port"`},
		{func(c *agent.Config) { c.Networks = []string{"10.0.0.0/99"} }, "10.0.0.0/99"},
		{
			func(c *agent.Config) { c.PortHigh = 29700 },
			"--port-range \"0-29700\": must be LOW-HIGH within 1 to 65535",
		},
		{func(c *agent.Config) { c.PortLow, c.PortHigh = 29700, 29600 }, "--port-range \"29700-29600\": must be"},
		{func(c *agent.Config) { c.PortLow, c.PortHigh = 1, 65536 }, "--port-range \"1-65536\": must be"},
		{func(c *agent.Config) { c.JoinTimeout = -time.Second }, "--join-timeout -1s: must not be negative"},
		{func(c *agent.Config) { c.Grace = -time.Second }, "--grace -1s"},
		{func(c *agent.Config) { c.ExitTimeout = -time.Second }, "--exit-timeout -1s"},
		{
			func(c *agent.Config) { c.PeerTimeout = presence.MinTimeout - 1 },
			"--peer-timeout 2.999999999s: must be at least 3s",
		},
		{func(c *agent.Config) { c.MasterPort = 65536 }, "65536"},
		{func(c *agent.Config) { c.Device = "gpu" }, `"gpu"`},
		{func(c *agent.Config) { c.Set = []string{"NAME={rnak}"} }, "rnak"},
		{
			func(c *agent.Config) { c.Restarts.Never = []int{3, 256} },
			`--no-restart-on "256": must be exit codes, 1 to 255`,
		},
	} {
		config := config(t, succeed, 1)
		c.change(&config)
		r := &recorder{t: t}
		result, err := r.run(t.Context(), config)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Run: error %v, want one with %q", err, c.want)
		}
		checkCode(t, result, err, agent.CodeAgent)
		if len(r.events) > 0 {
			t.Errorf("Run: %v: events %q, want none", err, r.types())
		}
	}
}

// Everything that is wrong is reported together, and a field that excludes another one by name.
func TestValidateReportsAll(t *testing.T) {
	c := agent.Config{
		Launcher: "slrum", Grace: -time.Second, NoCapture: true, Show: "first",
		Etcd: etcd.Cluster{URLs: []string{"http://user:secret@etcd1"}}, Join: "10.0.0.1:29600/key",
	}
	want := `cannot use launcher "slrum": not one of ` + strings.Join(envmap.Choices(), ", ") + "\n" +
		`cannot use the etcd URL "...@etcd1": must not contain a user` + "\n" +
		"--grace -1s: must not be negative\n" +
		"--capture \"never\": --tag, --log-dir and --show read the output\n" +
		`--show "first": must be ranks, such as 0 or 0,4-7, local:0, or none`
	if err := c.Validate(); err == nil || err.Error() != want {
		t.Errorf("Validate: %v\nwant %s", err, want)
	}
	if err := agent.Defaults().Validate(); err != nil {
		t.Errorf("Validate: %v, want no error for the defaults", err)
	}
}

// The zero value of a field is its default, and None is no time at all.
func TestZeroConfigIsDefaults(t *testing.T) {
	zero, none := agent.Config{}, agent.Config{
		Grace: agent.None, JoinTimeout: agent.None, Rules: rdzv.Rules{LastCall: agent.None},
	}
	for _, c := range []*agent.Config{&zero, &none} {
		c.Program = []string{"/bin/true"}
		l, err := agent.Plan(*c)
		if err != nil {
			t.Fatal(err)
		}
		*c = l.Config
	}
	d := agent.Defaults()
	if zero.Grace != d.Grace || zero.JoinTimeout != d.JoinTimeout || zero.LastCall != d.LastCall ||
		zero.PeerTimeout != d.PeerTimeout || zero.PortLow != d.PortLow ||
		zero.Device != d.Device || zero.Bind != d.Bind || zero.Etcd.Prefix != d.Etcd.Prefix || d.Grace == 0 || d.JoinTimeout == 0 {
		t.Errorf("the zero Config is %+v, want %+v", zero, d)
	}
	if none.Grace != 0 || none.JoinTimeout != 0 || none.LastCall != 0 {
		t.Errorf("None is %v, %v, %v, want 0", none.Grace, none.JoinTimeout, none.LastCall)
	}
}

// By default the agent is the only one of its job and runs one worker.
func TestConfigDefaults(t *testing.T) {
	l, err := agent.Plan(agent.Config{Program: []string{"/bin/true"}})
	if err != nil {
		t.Fatal(err)
	}
	if l.Placement.Launcher != envmap.None || l.Agents != 1 || l.Workers != 1 {
		t.Errorf("launcher %s, %d agents, %d workers; want none, 1, 1",
			l.Placement.Launcher, l.Agents, l.Workers)
	}
	if l.Path != "/bin/true" || !strings.HasPrefix(l.Job, "true-") || len(l.Problems) > 0 {
		t.Errorf("path %s, job %s, problems %v; want /bin/true, true-..., none",
			l.Path, l.Job, l.Problems)
	}
	if l.Config.PeerTimeout != presence.DefaultTimeout || l.Config.Root == nil {
		t.Errorf("peer timeout %v, root %v; want %v and /",
			l.Config.PeerTimeout, l.Config.Root, presence.DefaultTimeout)
	}
	c := agent.Config{Program: []string{"/bin/true"}, Environ: []string{"TMPDIR=" + t.TempDir()}}
	result, err := agent.Run(t.Context(), c)
	checkCode(t, result, err, 0)
	if result.World.Size != 1 {
		t.Errorf("world of %d workers, want 1", result.World.Size)
	}
}
