package completion

import (
	"strings"
	"testing"

	"rdzv/cmd/rdzv/internal/options"
)

// The program begins with the first word that is no flag and no value of one, or after "--". "_" is
// an empty word, at which the user has typed nothing yet.
func TestProgramAt(t *testing.T) {
	for line, want := range map[string]int{
		"_": 0, "pyth": 0, "-- _": 1, "-- --help": 1, "train.py --nodes 2": 0,
		"--nodes 2 _": 2, "--nodes=2 pyth": 1, "--nodes = 2 pyth": 3, "--capture = never -- a = b": 4,
		"--tag ls": 1, "--tag --nodes 2 ls -l": 3, "-m package": 1, "-v ls": 1,
		"--nproc_per_node 2 ls": 2, "--unknown ls": 1,

		"--": -1, "-": -1, "--nod": -1, "--nodes _": -1, "--nodes 2": -1, "--device =": -1,
		"--device = m": -1, "--nodes 2 --": -1, "--nodes 2 -": -1,
	} {
		words := strings.Fields(line)
		for i := range words {
			if words[i] == "_" {
				words[i] = ""
			}
		}
		if got := ProgramAt(options.New().ExecFlags(), words); got != want {
			t.Errorf("rdzv exec %s: the program is at %d, want %d", line, got, want)
		}
	}
}
