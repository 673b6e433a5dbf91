package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/storehost"
	"rdzv/rdzv/store"
)

// unremovable is a store that cannot be removed.
type unremovable struct {
	*store.Server
	err error
}

func (s unremovable) Close() error { return errors.Join(s.Server.Close(), s.err) }

// What cannot be removed of the store is reported.
func TestStoreThatCannotBeRemoved(t *testing.T) {
	s, err := store.Start(t.Context(), store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("cannot remove the store's directory")
	leads := rdzv.LeaderConfig{Job: "job", Tasks: 1, Notify: func(rdzv.Notice) {}}
	h, err := storehost.New(t.Context(), unremovable{s, broken}, nil, leads)
	if err != nil {
		t.Fatal(err)
	}
	var reported []Event
	events := &reporter{events: func(e Event) { reported = append(reported, e) }}
	(&connection{events: events, hosted: h}).close()
	if len(reported) != 1 || !errors.Is(reported[0].(Diagnostic).Err, broken) {
		t.Errorf("reported %v, want %v", reported, broken)
	}
}

// Slurm's scontrol is found by PATH of Config.Environ and runs in that environment.
func TestScontrol(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$SLURM_CONF $*\"\n"
	if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	environ := []string{"PATH=" + dir, "SLURM_CONF=/etc/slurm/other.conf"}
	l := &Local{Config: Config{Environ: environ}, env: envmap.ParseEnv(environ)}
	c := connection{local: l, events: &reporter{events: func(Event) {}}}
	out, err := c.meetConfig().Scontrol(t.Context(), "show", "node")
	if want := "/etc/slurm/other.conf show node\n"; err != nil || string(out) != want {
		t.Errorf("scontrol printed %q, %v; want %q", out, err, want)
	}
}

// The store leaves MASTER_PORT to the program. If tasks of this node are missing, how many there are
// may be the number of all tasks of the job, which does not show that the job is on this node alone.
func TestMeetConfig(t *testing.T) {
	for _, missing := range []bool{false, true} {
		l := &Local{Config: Config{MasterPort: 29650, TasksMissing: missing}}
		l.Placement.LocalSize, l.Placement.Nodes = 4, 1
		c := (&connection{local: l, events: &reporter{}}).meetConfig()
		if c.MasterPort != 29650 {
			t.Errorf("MASTER_PORT is %d", c.MasterPort)
		}
		known := c.LocalSize == 4 && c.Nodes == 1
		unknown := c.LocalSize == envmap.Unknown && c.Nodes == envmap.Unknown
		if known == missing || unknown != missing {
			t.Errorf("tasks are missing: %t, but %d tasks on this of %d nodes", missing, c.LocalSize, c.Nodes)
		}
	}
}
