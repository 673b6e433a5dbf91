package envmap

import (
	"strings"
	"testing"
)

func TestInside(t *testing.T) {
	if _, inside, err := Inside(recorded(t, "openmpi4-headrank", 1)); inside || err != nil {
		t.Errorf("a task was taken for a worker, %v", err)
	}
	environ, _, err := Torch(entries(recorded(t, "slurm22-sbatch-1pernode", 1)), second,
		TorchOptions{StripLauncher: true})
	if err != nil {
		t.Fatal(err)
	}
	p, inside, err := Inside(ParseEnv(environ))
	if !inside || err != nil || p.Job != "job-7" {
		t.Fatalf("inside %v, job %q, %v", inside, p.Job, err)
	}
	wantPlacement(t, p, placed(Slurm, 5, 8, 1, 4, 1, 2))
	for env, names := range map[string]string{
		"RDZV_RUN_ID=x WORLD_SIZE=2":        "RANK",
		"RDZV_RUN_ID=x RANK=2 WORLD_SIZE=2": "RANK=2",
	} {
		if _, inside, err := Inside(ParseEnv(strings.Fields(env))); !inside || err == nil ||
			!strings.Contains(err.Error(), names) {
			t.Errorf("%s: %v, %v", env, inside, err)
		}
	}
}
