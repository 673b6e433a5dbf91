package integration

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What the agents of the two hosts have in their environment. Slurm forwards nothing but what a
// test needs itself: SLURM_EXPORT_ENV is srun's --export.
var (
	exportEnv = []string{
		"DATA=of the launcher", "SLURM_EXPORT_ENV=" + markName + ",PATH,HOME,TMPDIR",
	}
	exportSetup = []string{"sh", "-c", `
		if [ $(hostname) = node1 ]; then export FROM=one XP_A=1; else export FROM=two XP_B=2; fi
		exec "$@"`, "sh"}
)

// All workers have rank 0's variables, under all launchers, whatever these forward.
func TestExport(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	c.jobEnv = exportEnv
	var scenarios []scenario
	for _, launcher := range jobLaunchers {
		scenarios = append(scenarios, scenario{launcher, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "exports")
			text := "# two\nFILE=a 'b' $c\nXP_A=3\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			flags := append(slices.Clone(joinSoon), "--export-file", file)
			flags = append(flags, "--export", "FROM,XP_*,GIVEN=x,y")
			want := map[string]string{
				"FROM": "one", "XP_A": "3", "GIVEN": "x,y", "FILE": "a 'b' $c",
			}
			if launcher != "slurm" {
				flags = append(flags, "--export", "DATA")
				want["DATA"] = "of the launcher"
			}
			j := c.startJob(t, launcher, 2, flags, worker("record", jobDir), exportSetup...)
			j.checkCommands(0)
			for rank, r := range records(t, j.records(), workersPerJob) {
				r.checkEnv(t, want)
				if _, has := r.Env["XP_B"]; has != (r.Env["NODE_RANK"] == "1") {
					t.Errorf("rank %d on node %s has XP_B: %t", rank, r.Env["NODE_RANK"], has)
				}
			}
			if lines := j.linesWith("rdzv:"); len(lines) != 1 {
				t.Errorf("rdzv printed %q, want only where the ranks are", lines)
			}
		}})
	}
	runConcurrently(t, scenarios)
}

// With PATH the program is looked up again. If a host does not have it, a rank there has failed.
func TestExportPath(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	const dir = "/dev/shm/rdzv-tools" // /dev/shm is each host's own
	install := func(condition string) []string {
		script := `if ` + condition + `; then mkdir -p $1; ln -sf $2 $1/only-there; fi
			shift 2; exec "$@"`
		return []string{"sh", "-c", script, "sh", dir, self}
	}
	program := append([]string{"only-there"}, worker("record", jobDir)[1:]...)
	flags := append(slices.Clone(joinSoon), "--export", "PATH="+dir)
	for _, launcher := range jobLaunchers {
		t.Run(launcher, func(t *testing.T) {
			c.run(c.on(2, "rm", "-rf", dir))
			j := c.startJob(t, launcher, 2, flags, program, install("[ $(hostname) = node1 ]")...)
			j.checkCommands(127)
			j.compareAgentCodes(127)
			want := `rdzv: cannot run "only-there": not found in PATH "` + dir + `"`
			if len(j.linesWith(want)) == 0 {
				t.Errorf("the agents printed %q, want %q", j.linesWith("rdzv:"), want)
			}
			j = c.startJob(t, launcher, 2, flags, program, install("true")...)
			j.checkCommands(0)
			for _, r := range records(t, j.records(), workersPerJob) {
				r.checkEnv(t, map[string]string{"PATH": dir})
			}
		})
	}
}

// A directory that is missing on one host is reported as a problem of that host.
func TestChdir(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	const dir = "/dev/shm/rdzv-workers"
	c.run(c.on(1, "mkdir", dir))
	flags := append(slices.Clone(joinSoon), "--chdir", dir)
	for _, launcher := range jobLaunchers {
		t.Run(launcher, func(t *testing.T) {
			c.run(c.on(2, "rm", "-rf", dir))
			j := c.startJob(t, launcher, 2, flags, worker("record", jobDir))
			j.checkCommands(121)
			checkNumberOfWorkers(t, j.records(), 0)
			want := `rdzv: cannot change to directory "` + dir +
				`": no such file or directory (on node2)`
			if len(j.linesWith(want)) == 0 {
				t.Errorf("the agents printed %q, want %q", j.linesWith("rdzv:"), want)
			}
			c.run(c.on(2, "mkdir", dir))
			j = c.startJob(t, launcher, 2, flags, []string{"sh", "-c", "echo in $(pwd -P)"})
			j.checkCommands(0)
			if lines := j.linesWith("in " + dir); len(lines) != workersPerJob {
				t.Errorf("%d of %d workers run in %s", len(lines), workersPerJob, dir)
			}
		})
	}
}

// The values of exported variables are in no file, among them the store's and the report, no
// command line, and no message. The names, which the store contains, show that it is searched.
func TestExportIsNotVisible(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	const copied, listed = "NCCL_a-copied-secret", "TORCH_a-listed-secret"
	for name, confirm := range map[string][]string{
		"alone": nil, "with HOME": {"--export", "HOME"},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.newPlace(t)
			file := filepath.Join(t.TempDir(), "exports")
			if err := os.WriteFile(file, []byte("TORCH_LISTED="+listed+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			end := filepath.Join(p.dir("both"), "end")
			flags := []string{"-v", "--nodes", "2", "--store", "node1", "--join-timeout", "60s"}
			second := p.on(2, rdzvExec(flags, worker("until", p.dir("job"), end))...)
			report := filepath.Join(p.root, "report")
			flags = append(flags, "--export", "NCCL_COPIED", "--export-file", file)
			flags = append(flags, "--report", report)
			line := rdzvExec(append(flags, confirm...), worker("until", p.dir("job"), end))
			first := p.startWith([]string{"NCCL_COPIED=" + copied}, c.on(1, line...)...)
			for _, r := range records(t, p.dir("job"), 2) {
				r.checkEnv(t, map[string]string{"NCCL_COPIED": copied, "TORCH_LISTED": listed})
			}
			secrets := encodings(copied, listed)
			p.checkHidden(secrets)
			if names := p.filesWithout("job", []string{"NCCL_COPIED"}); len(names) == 0 {
				t.Error("no file has the names of exported variables: were the store's searched?")
			}
			if err := os.WriteFile(end, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			checkCodes(0, first, second)
			p.checkHidden(secrets)
			for _, agent := range []*process{first, second} {
				lines, _ := agent.output()
				for _, message := range lines {
					checkHasNone(t, "a message", message, secrets)
				}
			}
			if _, err := os.Stat(report); err != nil {
				t.Error(err)
			}
		})
	}
}

// encodings are texts as they are and in base64, wherever they begin in what is encoded.
func encodings(texts ...string) (all []string) {
	for _, text := range texts {
		all = append(all, text)
		for skip := range 3 {
			whole := len(text[skip:]) / 3 * 3
			all = append(all, base64.RawStdEncoding.EncodeToString([]byte(text[skip:skip+whole])))
		}
	}
	return all
}

// checkHidden checks that no process of the place has one of these texts in its command line, and
// no file but the workers' own records.
func (p *place) checkHidden(secrets []string) {
	p.t.Helper()
	for _, pid := range p.tree() {
		for _, word := range commandLine(pid) {
			checkHasNone(p.t, fmt.Sprintf("the command line of process %d", pid), word, secrets)
		}
	}
	for _, file := range p.filesWithout("job", secrets) {
		p.t.Errorf("the file %s contains the value of an exported variable", file)
	}
}

// filesWithout are the files of the place that contain one of the texts, without a directory.
func (p *place) filesWithout(dir string, texts []string) []string {
	p.t.Helper()
	return slices.DeleteFunc(filesWith(p.t, p.root, texts), func(file string) bool {
		return strings.HasPrefix(file, filepath.Join(p.root, dir)+"/")
	})
}
