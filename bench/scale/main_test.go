package main

import (
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-store=") { // startStore runs this binary
		main()
		return
	}
	os.Exit(m.Run())
}

// What an agent costs on the wire and in the store is the same in a large job as in a small one.
func TestMessagesAreLinear(t *testing.T) {
	for secured, most := range map[bool]float64{false: 3000, true: 6000} {
		var before float64
		for _, n := range []int{32, 128} {
			r, err := run(n, options{end: "fail", tls: secured})
			if err != nil {
				t.Fatal(err)
			}
			bytes := float64(r.bytes) / float64(n)
			t.Logf("%d agents, TLS %v: %.0f bytes and %.2f changes each", n, secured, bytes, float64(r.changes)/float64(n))
			if bytes > most || before > 0 && bytes > 1.25*before {
				t.Errorf("%d agents: %.0f bytes each, want at most %.0f and no more than in a small job (%.0f)", n, bytes, most, before)
			}
			if r.changes > int64(2*n+8) {
				t.Errorf("%d agents: %d changes of the store, want two each and a few", n, r.changes)
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
			if r.world <= 0 || r.gone < r.known || r.gone <= 0 || r.bytes <= 0 || r.peak <= 0 || r.joinCPU <= 0 || r.dials < 8 {
				t.Errorf("measured %+v", r)
			}
		})
	}
}
