package main

import (
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-store=") { // see startStore
		main()
		return
	}
	os.Exit(m.Run())
}

// An agent of a large job sends as many bytes, and writes to the store as often, as one of a small
// job.
func TestMessagesAreLinear(t *testing.T) {
	for secured, most := range map[bool]float64{false: 3000, true: 6000} {
		var before float64
		for _, n := range []int{32, 128} {
			r, err := run(n, options{end: "fail", tls: secured})
			if err != nil {
				t.Fatal(err)
			}
			bytes := float64(r.bytes) / float64(n)
			t.Logf("%d agents, TLS %v: %.0f bytes and %.2f changes each",
				n, secured, bytes, float64(r.changes)/float64(n))
			if bytes > most || before > 0 && bytes > 1.25*before {
				t.Errorf("%d agents, TLS %v: %.0f bytes each, want at most %.0f, and at most "+
					"1.25 times those of fewer agents (%.0f)", n, secured, bytes, most, before)
			}
			if r.changes > int64(2*n+8) {
				t.Errorf("%d agents changed the store %d times, want at most %d",
					n, r.changes, 2*n+8)
			}
			before = bytes
		}
	}
}

func TestRun(t *testing.T) {
	for name, o := range map[string]options{
		"a worker fails":   {end: "fail"},
		"an agent is lost": {end: "loss"},
		"all succeed":      {end: "done"},
		"with TLS":         {end: "fail", tls: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := run(8, o)
			if err != nil {
				t.Fatal(err)
			}
			if r.world <= 0 || r.settled <= 0 || r.bytes <= 0 || r.peakBytes <= 0 || r.joinCPU <= 0 {
				t.Errorf("a time, the bytes or the memory is missing: %+v", r)
			}
			if r.settled < r.ended {
				t.Errorf("all had settled after %v, the job ended after %v", r.settled, r.ended)
			}
			if r.dials < 8 {
				t.Errorf("8 agents dialled %d times", r.dials)
			}
		})
	}
}
