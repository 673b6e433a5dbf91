package integration

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// inherited prints, to a file in the directory $1, what a process gets from its parent: lines of a
// name, ": " and a value. The first commands run before the shell opens or changes anything.
const inherited = `
f="$1/${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-${RANK:-0}}}}"
readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2 2>&1 | sed 's/^/standard stream: /' > "$f"
exec > /dev/null 2>&1 >> "$f"
for d in /proc/$$/fd/*; do
	n=${d##*/}
	[ "$n" -gt 2 ] && [ "$n" != "$PMI_FD" ] && echo "descriptor $n: $(readlink $d)"
done
[ -n "$PMI_FD" ] && echo "PMI_FD: $(readlink /proc/$$/fd/$PMI_FD)"
grep -E '^(Umask|Uid|Gid|Groups|NoNewPrivs|Seccomp.*|Speculation.*|Cap.*|Sig(Blk|Ign|Cgt)|.*_allowed_list):' \
	/proc/self/status
sed -E 's/  +/: /' /proc/self/limits
sed 's/^/cgroup: /' /proc/self/cgroup
for n in oom_score_adj timerslack_ns personality cpuset coredump_filter loginuid; do echo "$n: $(cat /proc/self/$n)"; done
for n in cgroup ipc mnt net pid user uts time; do echo "namespace $n: $(readlink /proc/self/ns/$n)"; done
for n in cwd root; do echo "$n: $(readlink /proc/self/$n)"; done
echo "memory policy: $(awk '{ print $2; exit }' /proc/self/numa_maps)"
echo "io priority: $(ionice -p $$)"
awk '{ print "nice: " $19 "\nscheduling policy: " $41 "\ncontrolling terminal: " $7
	print "real-time priority: " $40
	print "session: " ($6 == $1 ? "its own" : "inherited")
	print "process group: " ($5 == $1 ? "its own" : "inherited") }' /proc/$$/stat
tr '\0' '\n' < /proc/$$/environ | sed -nE 's/^([A-Za-z_0-9]+)=/environment \1: /p'
exec setpriv --dump
`

// ownNumbers are those of one step of a job, or of one file.
var ownNumbers = regexp.MustCompile(`step_[0-9]+|(pipe|socket|/dev/pts/)(:\[)?[0-9]+\]?`)

// A workerDifference is what a worker gets otherwise than a program that its launcher starts. This is
// the whole list: nothing else may differ.
type workerDifference struct {
	name      string // matches the names of what differs
	launchers string // separated by spaces; "" is all
	value     string // matches what workers get
	reason    string
}

var workerDifferences = []workerDifference{
	{`environment (RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT)`, "", `.`,
		"what rdzv is for: torch's init_process_group reads them"},
	{`environment (GROUP_RANK|GROUP_WORLD_SIZE|NODE_RANK|ROLE_(NAME|RANK|WORLD_SIZE))`, "", `.`,
		"as torchrun sets them"},
	{`environment TORCHELASTIC_[A-Z_]+`, "", `.`,
		"as torchrun sets them; the error file is where torch writes an exception for the report"},
	{`environment RDZV_DEVICE_INDEX`, "", `^[0-9]+$`, "which of the devices that it sees is its own"},
	{`environment RDZV_(RUN_ID|ATTEMPT|DETECTED)`, "", `.`,
		"which job, which attempt of it, and what it was started by"},
	{`environment OMP_NUM_THREADS`, "", `^[0-9]+$`,
		"as torchrun sets it, but the CPUs of the worker; only if it is not set"},
	{`environment TORCH_NCCL_ASYNC_ERROR_HANDLING`, "", `^1$`, "as torchrun sets it"},
	{`environment PYTHONFAULTHANDLER`, "", `^1$`, "Python prints its stacks at SIGABRT"},
	{`environment NCCL_RAS_ADDR`, "", `^127.0.0.1:[0-9]+$`,
		"each job on a node has its own, so that it can be asked where a collective hangs"},
	{`environment PMIX_MCA_gds`, "openmpi", `^hash$`,
		"so that a task of Open MPI 4 can run several MPI programs, one after another"},
	{`environment (OMPI_ARGV|OMPI_COMMAND|SLURM_JOB_NAME)`, "openmpi srun", `rdzv|exec`,
		"the launcher's name of the program that it has started"},
	{`environment _`, "terminal", `rdzv$`, "bash's name of the program that it has started"},
	{`Parent death signal`, "", `^KILL$`, "a worker dies if its runner does"},
	{`session`, "hydra", `^inherited$`,
		"each task of Hydra has a session of its own: the worker is in that of its agent"},
	{`process group`, "srun", `^its own$`,
		"each worker has a group, so that what it signals by kill(0) reaches its descendants only; tasks " +
			"of srun are together in that of the first"},
	{`process group`, "terminal", `^inherited$`,
		"keys reach the whole foreground group, so the workers are in that of the agent"},
}

// differs says why a worker has another value, or none; "" if it must not.
func differs(launcher, name, value string) (reason string) {
	for _, d := range workerDifferences {
		here := d.launchers == "" || slices.Contains(strings.Fields(d.launchers), launcher)
		named := regexp.MustCompile(`^(?:` + d.name + `)$`).MatchString(name)
		if here && named && regexp.MustCompile(d.value).MatchString(value) {
			return d.reason
		}
	}
	return ""
}

// facts are what a process has printed by inherited. Values with the same name are joined.
func facts(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(ownNumbers.ReplaceAllString(string(text), "$1")) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		all[name] += strings.TrimSpace(value) + "\n"
	}
	for name := range all {
		all[name] = strings.TrimSpace(all[name])
	}
	return all
}

// A worker is where its launcher has put the task, with the same limits, CPUs, rights, descriptors,
// signals and environment, but for workerDifferences, also if the agent of its node is another task.
func TestWorkerInheritsAsWithoutRdzv(t *testing.T) {
	t.Parallel()
	used, ran := map[string]bool{}, 0
	for _, l := range launchers {
		t.Run(l.name, func(t *testing.T) {
			ran++
			p, n := l.place(t), 3
			if l.name == "direct" { // without rdzv it is one process
				n = 1
			}
			compareRuns(t, l.name, used, func(dir string, plain bool) (ranks []map[string]string) {
				program := []string{"sh", "-c", inherited, "inherited", p.dir(dir)}
				line := l.command(p, n, nil, program)
				if plain {
					line = append(line[:slices.Index(line, *rdzvBin)], program...)
				}
				p.start(slices.Insert(line, max(0, slices.Index(line, "srun")), unusual...)...).checkCode(0)
				for rank := range n {
					ranks = append(ranks, facts(t, filepath.Join(p.dir(dir), strconv.Itoa(rank))))
					checkUnusual(t, l.name, ranks[rank])
				}
				return ranks
			})
		})
	}
	t.Run("terminal", func(t *testing.T) {
		ran++
		term := newTerminal(t)
		script := filepath.Join(term.root, "inherited")
		if err := os.WriteFile(script, []byte(inherited), 0o600); err != nil {
			t.Fatal(err)
		}
		compareRuns(t, "terminal", used, func(dir string, plain bool) []map[string]string {
			line := []string{"sh", script, term.dir(dir)}
			if !plain {
				line = rdzvExec(nil, line)
			}
			term.typeAndWait(quoted(line)+"; echo code=$?\n", "code=0")
			return []map[string]string{facts(t, filepath.Join(term.dir(dir), "0"))}
		})
	})
	for _, d := range workerDifferences {
		if !used[d.reason] && ran == len(launchers)+1 && !openMPI5 {
			t.Errorf("%s does not differ", d.name)
		}
	}
}

// compareRuns compares a run with rdzv to two without: what differs between these two belongs to the
// run. It notes which reasons of differences were used.
func compareRuns(t *testing.T, launcher string, used map[string]bool,
	run func(dir string, plain bool) []map[string]string) {
	t.Helper()
	with, without, again := run("with", false), run("without", true), run("again", true)
	for rank := range with {
		for name, reason := range compare(t, launcher, with[rank], without[rank], again[rank]) {
			used[reason] = true
			if rank == 0 {
				t.Logf("%s is %q: %s", name, with[rank][name], reason)
			}
		}
	}
}

// unusual starts the launcher with settings that no test machine has.
var unusual = []string{"sh", "-c", `umask 027; exec 9</dev/null "$@"`, "sh",
	"prlimit", "--nofile=700:900", "--core=0", "nice", "-n", "2", "taskset", "-c", "0",
	"choom", "-n", "100", "--", "ionice", "-c", "2", "-n", "6", "setarch", "-R"}

// checkUnusual checks that these arrive, which is no news of rdzv: srun passes on few, mpirun closes
// descriptors.
func checkUnusual(t *testing.T, launcher string, worker map[string]string) {
	t.Helper()
	want := map[string]string{"Umask": "0027"}
	if launcher != "srun" {
		maps.Copy(want, map[string]string{"oom_score_adj": "100", "personality": "00040000",
			"io priority": "best-effort: prio 6", "Cpus_allowed_list": "0", "Max core file size": "0"})
	}
	if launcher == "direct" || launcher == "hydra" {
		want["descriptor 9"] = "/dev/null"
	}
	if launcher == "hydra" {
		want["PMI_FD"] = "socket"
	}
	want["Max open files"] = "700"
	for name, value := range want {
		if got := worker[name]; got != value && !strings.HasPrefix(got, value+" ") {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}

// compare checks what a worker gets. It returns the reasons of the differences, by their names.
func compare(t *testing.T, launcher string, with, without, again map[string]string) map[string]string {
	t.Helper()
	names := maps.Clone(with)
	maps.Copy(names, without)
	reasons := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		worker, isThere := with[name]
		plain, wasThere := without[name]
		ofRun := isThere && wasThere && plain != again[name]
		if worker == plain && isThere == wasThere || ofRun {
			continue
		}
		if reasons[name] = differs(launcher, name, worker); reasons[name] == "" {
			t.Errorf("%s: a worker has %q (%t), a program without rdzv %q (%t)", name, worker, isThere,
				plain, wasThere)
		}
	}
	return reasons
}
