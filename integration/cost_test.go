package integration

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// What is guarded here is counted, not timed, as far as it can be: counts are the same on every machine, and on a busy
// one. The bounds are a tenth above what was counted when they were written; who exceeds one either finds what has grown
// and leaves it out (make size), or raises the bound and says what for.

// initialisation is what a command spends before its main begins.
type initialisation struct{ packages, bytes, allocations int }

// initialise runs rdzv with the runtime's trace of package initialisation.
func initialise(t *testing.T, args ...string) (sum initialisation, names string) {
	t.Helper()
	command := exec.Command(*rdzvBin, args...)
	command.Env = []string{"GODEBUG=inittrace=1", "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1"}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	for line := range strings.Lines(string(out)) {
		var name string
		var at, clock float64
		var bytes, allocations int
		if n, _ := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &clock, &bytes, &allocations); n == 5 {
			sum = initialisation{sum.packages + 1, sum.bytes + bytes, sum.allocations + allocations}
			names += name + "\n"
		}
	}
	t.Logf("rdzv %s: %d packages are initialised with %d allocations of %d bytes", args[0], sum.packages, sum.allocations, sum.bytes)
	return sum, names
}

// Every start of rdzv, an agent's and a watchdog's, pays for the initialisation of all packages in it.
func TestInitialisationDoesNotGrow(t *testing.T) {
	for command, most := range map[string]initialisation{
		"version":  {300, 1_650_000, 8_700},
		"get-rank": {157, 500_000, 2_080},
	} {
		got, names := initialise(t, command)
		if got.packages == 0 || got.packages > most.packages || got.bytes > most.bytes || got.allocations > most.allocations {
			t.Errorf("rdzv %s initialises %+v, want at most %+v:\n%s", command, got, most, names)
		}
	}
}

func TestTheBinaryStaysSmall(t *testing.T) {
	info, err := os.Stat(*rdzvBin)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() > 30e6 {
		t.Errorf("the binary has %d bytes, more than 30 MB", info.Size())
	}
}

// A job under mpirun costs a few times what mpirun alone does, both measured in turn. An agent that waited for a timer, a
// name that does not resolve or a port that is taken would cost more than that.
func TestLaunchBesidePlainMpirun(t *testing.T) {
	const n, times, most = 4, 7, 6
	p := newPlace(t)
	took := func(prog ...string) time.Duration {
		began := time.Now()
		if code := p.start(append(mpirunLine(n), prog...)...).code(); code != 0 {
			t.Fatalf("%q ended with %d", prog, code)
		}
		return time.Since(began)
	}
	var plain, with []time.Duration
	for range times {
		plain = append(plain, took("true"))
		with = append(with, took(rdzvExec(nil, []string{"true"})...))
	}
	ratio := median(with).Seconds() / median(plain).Seconds()
	t.Logf("mpirun alone %v, with rdzv %v: x%.1f", median(plain), median(with), ratio)
	if ratio > most {
		t.Errorf("a job with rdzv takes %.1f times as long as without, want at most %d", ratio, most)
	}
}
