package integration

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// What is guarded here is counted or compared, not timed: counts are the same on every machine, and
// on a busy one.

// initialisation is what packages spend before a command's main begins.
type initialisation struct{ packages, bytes, allocations int }

func (i *initialisation) add(bytes, allocations int) {
	*i = initialisation{i.packages + 1, i.bytes + bytes, i.allocations + allocations}
}

// initialise runs rdzv with the runtime's trace of package initialisation. It returns what all packages
// spend, and what those of this module do.
func initialise(t *testing.T, args ...string) (all, own initialisation) {
	t.Helper()
	command := exec.Command(*rdzvBin, args...)
	command.Env = []string{"GODEBUG=inittrace=1", "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1"}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	const format = "init %s @%f ms, %f ms clock, %d bytes, %d allocs"
	for line := range strings.Lines(string(out)) {
		var name string
		var at, clock float64
		var bytes, allocations int
		if n, _ := fmt.Sscanf(line, format, &name, &at, &clock, &bytes, &allocations); n != 5 {
			continue
		}
		all.add(bytes, allocations)
		if name == "main" || strings.HasPrefix(name, "rdzv/") {
			own.add(bytes, allocations)
		}
	}
	if all.packages == 0 || own.packages == 0 {
		t.Fatalf("no trace of package initialisation:\n%s", out)
	}
	t.Logf("rdzv %s: in all packages %+v, in its own %+v", args[0], all, own)
	return all, own
}

// Every start of rdzv, an agent's and a watchdog's, pays for the initialisation of all packages in it.
// What the libraries spend depends on their versions and is not limited here. rdzv's own packages spend
// next to nothing, and get-rank answers before most of the libraries are initialised.
func TestInitialisationCost(t *testing.T) {
	whole, own := initialise(t, "version")
	rank, _ := initialise(t, "get-rank")
	if own.allocations > 50 || own.bytes > 8_000 {
		t.Errorf("rdzv's own packages spend %+v", own)
	}
	if 3*rank.allocations > whole.allocations {
		t.Errorf("get-rank spends %+v, more than a third of %+v", rank, whole)
	}
}

func TestBinarySize(t *testing.T) {
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
func TestLaunchTime(t *testing.T) {
	const n, times, most = 4, 7, 6
	p := newPlace(t)
	took := func(prog ...string) time.Duration {
		began := time.Now()
		if code := p.start(append(mpirunCommand(n), prog...)...).code(); code != 0 {
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
