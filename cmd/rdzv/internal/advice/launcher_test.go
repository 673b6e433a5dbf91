package advice

import (
	"strings"
	"testing"
)

func TestWithoutTorchrun(t *testing.T) {
	for program, want := range map[string]string{
		"python3 train.py":                   "",
		"python3 -m train torchrun":          "",
		"torchrun":                           "rdzv exec -- python3 SCRIPT",
		"torchrun -m package":                "rdzv exec -- python3 SCRIPT",
		"/venv/bin/torchrun train.py --lr 1": "rdzv exec -- python3 train.py --lr 1",
		"torchrun --nnodes=2 --nproc_per_node=4 train.py --nproc_per_node=8": "rdzv exec " +
			"--nproc-per-node 4 -- python3 train.py --nproc_per_node=8",
		"python3 -m torch.distributed.run --nproc-per-node gpu train.py": "rdzv exec " +
			"--nproc-per-node gpu -- python3 train.py",
		"python -m torch.distributed.launch a.py":  "rdzv exec -- python3 a.py",
		"python3 -u -m torch.distributed.run a.py": "rdzv exec -- python3 a.py",
	} {
		if got := WithoutTorchrun(strings.Fields(program)); got != want {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}
