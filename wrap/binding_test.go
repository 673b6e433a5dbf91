package wrap

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// allowed are the CPUs of this process.
func allowed(t *testing.T) (cpus []int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := range 8 * len(set) {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// TestBind: each worker has its own binding from its first instruction on, and what it starts
// inherits it. The runner does not keep it, nor does a worker without one get it.
func TestBind(t *testing.T) {
	nothingLeft(t)
	cpus, node := allowed(t), 0
	last := cpus[len(cpus)-1]
	const show = `sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status; ` +
		`sed -n '1s/[^ ]* \([^ ]*\) .*/\1/p' /proc/self/numa_maps; echo ready; read line`
	var tree Tree
	var outs []lineReader
	stdin, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	defer release.Close()
	for _, b := range []Binding{{CPUs: []int{last}, Node: &node}, {}} {
		w := sh(t, show)
		stdout, l := lines(t)
		w.Bind, w.Stdin, w.Stdout = b, stdin, stdout
		tree.Workers, outs = append(tree.Workers, w), append(outs, l)
	}
	own := statusField(t, "/proc/self/status")
	r := begin(t, tree)
	outs[0].want(strconv.Itoa(last), "prefer:0", "ready")
	outs[1].want(own, "default", "ready")
	pid := runnerOf(t, os.Getpid())
	{
		tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/status")
		for _, task := range tasks {
			if got := statusField(t, task); got != own {
				t.Errorf("%s of the runner: CPUs %s, want %s", task, got, own)
			}
		}
		maps, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/numa_maps")
		if err != nil || len(tasks) == 0 || strings.Contains(string(maps), "prefer") {
			t.Errorf("runner with %d threads: %v, %s", len(tasks), err, maps)
		}
	}
	release.Close() // the workers end
	if results, err := r.wait(); err != nil || results[0].Code > 1 || results[1].Code > 1 {
		t.Errorf("%+v, %v", results, err)
	}
}

// statusField is the list of CPUs in a status file.
func statusField(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nCpus_allowed_list:\t")
	list, _, _ := strings.Cut(rest, "\n")
	return list
}
