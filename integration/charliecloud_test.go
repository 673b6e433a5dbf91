package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// ch-run keeps the launcher's variables, network and process IDs, and descriptors such as Hydra's.
// The first three cases run as a user who is not root, of whom Slurm has no account.
func TestCharliecloud(t *testing.T) {
	t.Parallel()
	for _, l := range launchers {
		t.Run(l.name, func(t *testing.T) {
			p := l.place(t)
			t.Cleanup(p.removePasswd)
			inside := []string{"ch-run", p.rootFS(), "--"}
			run := func(script string) *process {
				line := slices.DeleteFunc(l.command(p, 2, nil, sh(script)), func(w string) bool {
					return w == "--quiet"
				})
				at := slices.Index(line, *rdzvBin)
				line = slices.Concat(line[:at], inside, []string{"rdzv"}, line[at+1:])
				if l.name != "srun" {
					line = asNobody(t, p, line)
				}
				return p.startWith([]string{"USER=user", "RDZV_TOKEN=" + oneToken}, line...)
			}
			job := run(`echo "rank $RANK of $WORLD_SIZE, $(ls /)"`)
			job.checkCode(0)
			for rank := range 2 {
				job.waitFor(fmt.Sprintf("rank %d of 2", rank))
			}
			job = run(`[ $RANK = 1 ] && exit 7; exec sleep 1000`)
			job.checkCode(7)
			job.waitFor("rank 1 of 2 failed first")
		})
	}
}

// removePasswd removes the files that ch-run leaves if its program ends quickly.
func (p *place) removePasswd() {
	for _, name := range []string{"passwd", "group"} {
		files, _ := filepath.Glob(filepath.Join(p.root, "tmp", "ch-run_"+name+".*"))
		for _, file := range files {
			p.must(os.Remove(file))
		}
	}
}
