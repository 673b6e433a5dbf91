package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// inherited prints, to a file in the directory $1, what a process gets from its parent.
const inherited = `
exec > "$1/${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SLURM_PROCID}}"
grep -E '^(Umask|Uid|Gid|Groups|NoNewPrivs|Seccomp|Cap.*|Sig(Blk|Ign)|.*_allowed_list):' /proc/self/status
cat /proc/self/limits /proc/self/cgroup /proc/self/oom_score_adj /proc/self/timerslack_ns
for n in cgroup ipc mnt net pid user uts time; do readlink /proc/self/ns/$n; done
readlink /proc/self/cwd
readlink /proc/self/fd/0
awk '{ print "nice " $19 ", policy " $41 }' /proc/self/stat
`

// ownNumbers are those of one step of a job, or of one file.
var ownNumbers = regexp.MustCompile(`step_[0-9]+|(pipe|socket):\[[0-9]+\]`)

// limited matches the soft limit that the test sets: srun passes on no other.
var limited = regexp.MustCompile(`Max open files +700 `)

// A worker is where its launcher has put the task, with the same limits, CPUs, rights and stdin, also
// if the agent of its node is another task.
func TestWorkerInheritsAsWithoutRdzv(t *testing.T) {
	t.Parallel()
	const n = 3
	for _, l := range launchers[1:] {
		t.Run(l.name, func(t *testing.T) {
			p := l.place(t)
			run := func(name string, plain bool) (ranks []string) {
				program := []string{"sh", "-c", inherited, "inherited", p.dir(name)}
				line := l.command(p, n, nil, program)
				if plain {
					line = append(line[:slices.Index(line, *rdzvBin)], program...)
				}
				// For one of the CPUs, with limits of its own.
				limits := []string{"prlimit", "--nofile=700:900", "--core=0", "nice", "-n", "2",
					"taskset", "-c", "0"}
				p.start(slices.Insert(line, max(0, slices.Index(line, "srun")), limits...)...).checkCode(0)
				for rank := range n {
					text, err := os.ReadFile(filepath.Join(p.dir(name), strconv.Itoa(rank)))
					if err != nil {
						t.Fatal(err)
					}
					if !limited.Match(text) {
						t.Errorf("rank %d has another limit of open files:\n%s", rank, text)
					}
					ranks = append(ranks, ownNumbers.ReplaceAllString(string(text), "$1"))
				}
				return ranks
			}
			with, without := run("with", false), run("without", true)
			for rank := range n {
				if with[rank] != without[rank] {
					t.Errorf("rank %d with rdzv:\n%s\nwithout:\n%s", rank, with[rank], without[rank])
				}
			}
		})
	}
}
