package integration

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// These tests count or compare instead of limiting times, because counts are the same on every
// machine.

// initialisation is what packages use before a command's main function starts.
type initialisation struct{ packages, bytes, allocations int }

func (i *initialisation) add(bytes, allocations int) {
	*i = initialisation{i.packages + 1, i.bytes + bytes, i.allocations + allocations}
}

// initialise runs rdzv with the Go runtime's trace of package initialisation. It returns what all
// packages use, and what those of this module use.
func initialise(t *testing.T, args ...string) (all, own initialisation) {
	t.Helper()
	command := exec.Command(*rdzvBin, args...)
	command.Env = []string{"GODEBUG=inittrace=1", "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1",
		"RDZV_LAUNCHER=env"}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	info, err := buildinfo.ReadFile(*rdzvBin)
	if err != nil {
		t.Fatal(err)
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
		if name == "main" || strings.HasPrefix(name, info.Main.Path+"/") {
			own.add(bytes, allocations)
		}
	}
	if all.packages == 0 || own.packages == 0 {
		t.Fatalf("rdzv printed no trace of package initialisation:\n%s", out)
	}
	t.Logf("rdzv %s: all packages %+v, its own %+v", args[0], all, own)
	return all, own
}

// Every start of rdzv, as agent or for another command, initialises all packages in it. What libraries use
// depends on their versions and is not limited here. rdzv's own packages use almost nothing, and
// get-rank prints its result before most libraries are initialised.
func TestInitialisationCost(t *testing.T) {
	whole, own := initialise(t, "version")
	rank, _ := initialise(t, "get-rank")
	if own.allocations > 80 || own.bytes > 8_000 {
		t.Errorf("rdzv's own packages use %+v, want at most 80 allocations and 8000 bytes", own)
	}
	if 3*rank.allocations > whole.allocations {
		t.Errorf("get-rank uses %+v, want at most a third of the allocations of %+v", rank, whole)
	}
}

func TestBinarySize(t *testing.T) {
	info, err := os.Stat(*rdzvBin)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() > 30e6 {
		t.Errorf("the binary has %d bytes, want at most 30 MB", info.Size())
	}
}

// A job with rdzv takes a few times as long as mpirun alone, measured alternately. It would take
// longer if an agent waited for a timer, for a name that does not resolve, or for a port that is in
// use.
func TestLaunchTime(t *testing.T) {
	const n, times, most = 4, 7, 6
	p := newPlace(t)
	took := func(program ...string) time.Duration {
		start := time.Now()
		p.start(append(mpirunCommand(n), program...)...).checkCode(0)
		return time.Since(start)
	}
	var plain, with []time.Duration
	for range times {
		plain = append(plain, took("true"))
		with = append(with, took(rdzvExec(nil, []string{"true"})...))
	}
	ratio := median(with).Seconds() / median(plain).Seconds()
	t.Logf("mpirun alone %v, with rdzv %v: %.1f times as long", median(plain), median(with), ratio)
	if ratio > most {
		t.Errorf("a job takes %.1f times as long with rdzv as without, want at most %d", ratio,
			most)
	}
}
