package main

import (
	"os"
	"os/exec"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rdzv/envmap"
)

// The output of get-rank in environments that launchers gave to ranks. "-" is a number that the
// launcher does not set.
func TestGetRankUnderLaunchers(t *testing.T) {
	flags := []string{"", "--local", "--node", "--size", "--local-size", "--nodes"}
	for _, c := range []struct{ record, want string }{
		{"openmpi4-headrank-rank3", "3 1 - 4 2 2"},
		{"openmpi4-launchernode-rank0", "0 0 - 4 2 2"},
		{"openmpi4-1pernode-rank1", "1 0 1 2 1 2"},
		{"openmpi4-insbatch-rank2", "2 0 - 4 2 2"},
		{"openmpi5-headrank-rank3", "3 1 - 4 2 -"},
		{"openmpi5-single-rank2", "2 2 0 4 4 1"},
		{"openmpi5-prterun-rank1", "1 - - - - -"},
		{"mpich4-headrank-rank2", "2 0 - 4 2 -"},
		{"mpich4-insbatch-rank1", "1 1 - 4 2 -"},
		{"slurm22-srun-rank3", "3 1 1 4 2 2"},
		{"slurm22-pmi2-rank1", "1 1 0 4 2 2"},
		{"slurm22-pmix-rank2", "2 0 1 4 2 2"},
		{"slurm22-gpus-per-task-rank3", "3 1 1 4 2 2"},
		{"slurm2411-sbatch-rank0", "0 0 0 4 2 2"},
		{"slurm22-batchbody-rank0", "- - - - - -"},
	} {
		t.Run(c.record, func(t *testing.T) {
			t.Parallel()
			env, err := launcherEnv(c.record)
			fatalIf(t, err)
			for i, want := range strings.Fields(c.want) {
				args := strings.Fields("get-rank " + flags[i])
				got := runRdzv(t, env, args...)
				errors := strings.Count(got.stderr, "rdzv: cannot determine ")
				switch {
				case want == "-" && (got.code != codeUnknown || got.stdout != "" || errors != 1):
					t.Errorf("%s: %+v; want code 1 and one error", args, got)
				case want != "-" && (got.code != codeOK || got.stdout != want+"\n" ||
					got.stderr != ""):
					t.Errorf("%s: %+v; want %s", args, got, want)
				}
			}
		})
	}
}

// get-rank answers while the program starts, before the expensive packages are initialised, if the
// question has an answer. See package early.
func TestGetRankIsAnsweredEarly(t *testing.T) {
	env := []string{"RANK=3", "WORLD_SIZE=4", "RDZV_LAUNCHER=env"}
	early := initialised(t, env, "get-rank", "--size")
	module := path.Dir(reflect.TypeFor[envmap.Env]().PkgPath())
	for _, expensive := range []string{
		"net", "net/http", "crypto/tls", "google.golang.org/grpc", module + "/rdzv",
		"go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/server/v3/embed",
		"go.etcd.io/etcd/server/v3/etcdserver",
	} {
		if slices.Contains(early, expensive) {
			t.Errorf("%s is initialised before get-rank answers", expensive)
		}
	}
	all := initialised(t, env, "version")
	if len(early)*3 > len(all)*2 {
		t.Errorf("get-rank answers after %d of %d packages are initialised, want two thirds at "+
			"most",
			len(early), len(all))
	}
	late := initialised(t, env, "get-rank", "--size", "--default", "1") // main answers
	if grpc := "google.golang.org/grpc"; !slices.Contains(late, grpc) {
		t.Errorf("the trace does not show %s, which main needs: this test cannot fail", grpc)
	}
}

// The other tasks of a node, and runners, begin before packages are initialised of which they need
// none. Go initialises a package as late as the last one that it imports: runtime/debug would be
// after regexp, and that before many others.
func TestRunnersBeginEarly(t *testing.T) {
	all := initialised(t, nil, "version")
	module := path.Dir(reflect.TypeFor[envmap.Env]().PkgPath())
	at := slices.Index(all, module+"/wrap")
	if at < 0 {
		t.Fatalf("package wrap is not in the trace: %q", all)
	}
	for _, late := range []string{"net", "regexp", "google.golang.org/grpc"} {
		if i := slices.Index(all, late); i < at {
			t.Errorf("package %s is initialised as number %d, package wrap as number %d", late, i, at)
		}
	}
}

// initialised lists the packages that a command initialises.
func initialised(t *testing.T, env []string, args ...string) (packages []string) {
	t.Helper()
	r := runRdzv(t, append(env, "GODEBUG=inittrace=1"), args...)
	if r.code != 0 {
		t.Fatalf("rdzv %q: exit code %d, want 0", args, r.code)
	}
	for line := range strings.Lines(r.stderr) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "init" {
			packages = append(packages, words[1])
		}
	}
	return packages
}

// What get-rank costs a script, compared with the start of a Python interpreter.
func BenchmarkGetRank(b *testing.B) {
	for _, command := range [][]string{{"rdzv", "get-rank"}, {"python3", "-c", "pass"}} {
		b.Run(command[0], func(b *testing.B) {
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), command[0], command[1:]...)
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "RANK=3", "WORLD_SIZE=4",
					"RDZV_LAUNCHER=env"}
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
