package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// get-rank under each launcher, from what real ones gave to a rank. "-" is what
// the launcher does not tell.
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
			env := record(t, c.record)
			for i, want := range strings.Fields(c.want) {
				stdout, stderr, code := called(t, env, strings.Fields("get-rank "+flags[i])...)
				switch {
				case want == "-" && (code != codeUnknown || stdout != "" || strings.Count(stderr, "rdzv: cannot determine ") != 1):
					t.Errorf("get-rank %s printed %q and %q, code %d; want a line that it cannot be told, code 1", flags[i], stdout, stderr, code)
				case want != "-" && (code != codeOK || stdout != want+"\n" || stderr != ""):
					t.Errorf("get-rank %s printed %q and %q, code %d; want %s", flags[i], stdout, stderr, code, want)
				}
			}
		})
	}
}

// record is the environment of a rank as envmap/testdata has it.
func record(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "envmap", "testdata", name+".env"))
	if err != nil {
		t.Fatal(err)
	}
	var env []string
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, "="); ok && name != "PATH" && name != "HOME" && name != "TMPDIR" {
			env = append(env, strings.TrimRight(line, "\n"))
		}
	}
	return env
}

// A question that has an answer is answered while the program starts, before the
// heavy packages are initialised. See package early.
func TestGetRankIsAnsweredEarly(t *testing.T) {
	env := []string{"GODEBUG=inittrace=1", "RANK=3", "WORLD_SIZE=4"}
	early := inits(t, env, "get-rank", "--size")
	for name := range early {
		for _, heavy := range []string{"net", "net/http", "crypto/tls", "google.golang.org/grpc", "go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/server/v3/embed", "go.etcd.io/etcd/server/v3/etcdserver", "rdzv/rdzv"} {
			if name == heavy {
				t.Errorf("%s is initialised before get-rank answers", name)
			}
		}
	}
	if late := inits(t, env, "version"); len(early)*3 > len(late)*2 {
		t.Errorf("get-rank answers after %d packages, of %d before main", len(early), len(late))
	}
	// An answer of the long way has all of them behind it.
	if late := inits(t, env, "get-rank", "--size", "--default", "1"); late["google.golang.org/grpc"] == 0 {
		t.Error("the trace does not show grpc's initialisation: this test sees nothing")
	}
}

// inits are the packages that a command initialises, numbered in their order from 1.
func inits(t *testing.T, env []string, args ...string) map[string]int {
	t.Helper()
	_, stderr, code := called(t, env, args...)
	if code != 0 {
		t.Fatalf("rdzv %v ended with %d", args, code)
	}
	names := map[string]int{}
	for line := range strings.Lines(stderr) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "init" {
			names[words[1]] = len(names) + 1
		}
	}
	return names
}

// What a script pays for its rank, beside the start of the interpreter in the PATH.
func BenchmarkGetRank(b *testing.B) {
	for _, line := range [][]string{{"rdzv", "get-rank"}, {"python3", "-c", "pass"}} {
		b.Run(line[0], func(b *testing.B) {
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), line[0], line[1:]...)
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "RANK=3", "WORLD_SIZE=4"}
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
