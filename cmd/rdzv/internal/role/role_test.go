package role

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"
)

// The packages that this one imports, directly or not, are initialised before it. These would make
// it wait for all packages that are ready and sort before them, many of etcd's among them.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for _, late := range []string{"net", "os/exec", "path/filepath"} {
		if slices.Contains(strings.Fields(string(out)), late) {
			t.Errorf("package role depends on %s", late)
		}
	}
}

// processes are an mpirun with a task, and a shell with another one.
var processes = fstest.MapFS{
	"7/stat":  stat(7, "mpirun", 1),
	"71/stat": stat(71, "rdzv", 7),
	"8/stat":  stat(8, "bash", 1),
	"81/stat": stat(81, "rdzv", 8),
	"9/stat":  stat(9, "mpirun", 1),
	"91/stat": stat(91, "rdzv", 9),
}

func stat(pid int, name string, parent int) *fstest.MapFile {
	text := fmt.Sprintf("%d (%s) S %d %s", pid, name, parent, strings.Repeat("0 ", 40))
	return &fstest.MapFile{Data: []byte(text)}
}

// ofMpirun is the environment of a task, with other variables.
func ofMpirun(rank, localSize int, more ...string) []string {
	return append([]string{
		fmt.Sprintf("OMPI_COMM_WORLD_RANK=%d", rank), fmt.Sprintf("OMPI_COMM_WORLD_LOCAL_RANK=%d", rank),
		"OMPI_COMM_WORLD_SIZE=4", fmt.Sprintf("OMPI_COMM_WORLD_LOCAL_SIZE=%d", localSize),
		fmt.Sprintf("PMIX_RANK=%d", rank), "OMPI_COMM_WORLD_NODE_RANK=0",
	}, more...)
}

// Tasks meet at the same address if nothing but their rank differs, and at none if each is to be an
// agent of its own.
func TestAddress(t *testing.T) {
	args := []string{"--grace", "3s", "--", "train", "--launcher"}
	first, place := address(args, ofMpirun(0, 4), processes, 71)
	if first == "" || place.LocalRank != 0 || place.LocalSize != 4 {
		t.Fatalf("address %q, place %+v; want one of 4 tasks", first, place)
	}
	const same, other, none = "the same", "another", "none"
	for name, c := range map[string]struct {
		args, environ []string
		pid           int
		want          string
	}{
		"another rank":           {args, ofMpirun(1, 4), 71, same},
		"another variable":       {args, ofMpirun(1, 4, "X=1"), 71, same},
		"another RDZV_ variable": {args, ofMpirun(1, 4, "RDZV_GRACE=1s"), 71, other},
		"another argument":       {slices.Concat(args, []string{"x"}), ofMpirun(1, 4), 71, other},
		"another mpirun":         {args, ofMpirun(1, 4), 91, other},
		"no mpirun":              {args, ofMpirun(1, 4), 81, none},
		"no launcher":            {args, nil, 71, none},
		"one task on the node":   {args, ofMpirun(1, 1), 71, none},
		"a launcher is named":    {slices.Concat([]string{"--launcher=none"}, args), ofMpirun(1, 4), 71, none},
		"a launcher in RDZV_":    {args, ofMpirun(1, 4, "RDZV_LAUNCHER=none"), 71, none},
		"help":                   {[]string{"--help"}, ofMpirun(1, 4), 71, none},
	} {
		got, _ := address(c.args, c.environ, processes, c.pid)
		is := other
		switch got {
		case "":
			is = none
		case first:
			is = same
		}
		if is != c.want {
			t.Errorf("%s: %s address, want %s", name, is, c.want)
		}
	}
}

// Go follows changes of an agent's processors, also after it has used few for a while.
func TestProcessorsChange(t *testing.T) {
	if os.Getenv("ROLE_TEST") == "" {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestProcessorsChange$")
		cmd.Env = append(os.Environ(), "ROLE_TEST=1", "GOMAXPROCS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	all := runtime.GOMAXPROCS(0)
	useAll := use(1, nil)
	few := runtime.GOMAXPROCS(0)
	useAll()
	if again := runtime.GOMAXPROCS(0); few != 1 || again != all {
		t.Errorf("uses %d, then %d of %d processors", few, again, all)
	}
	useOneCPU(t)
	late, tick := time.After(30*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for runtime.GOMAXPROCS(0) > 1 {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("uses %d processors 30 s after it has one", runtime.GOMAXPROCS(0))
		}
	}
}

// An agent uses as many processors as its user has given.
func TestProcessorsGiven(t *testing.T) {
	defer runtime.SetDefaultGOMAXPROCS()
	runtime.GOMAXPROCS(3)
	use(1, []string{"GOMAXPROCS=3"})()
	if n := runtime.GOMAXPROCS(0); n != 3 {
		t.Errorf("uses %d processors, want 3", n)
	}
}

// useOneCPU binds all threads of this process to one CPU.
func useOneCPU(t *testing.T) {
	t.Helper()
	var set, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if set.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		tid, _ := strconv.Atoi(thread.Name())
		if err := unix.SchedSetaffinity(tid, &one); err != nil {
			t.Fatal(err)
		}
	}
}
