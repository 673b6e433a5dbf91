package agent

import (
	"os"
	"path/filepath"
	"testing"

	"rdzv/envmap"
)

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
