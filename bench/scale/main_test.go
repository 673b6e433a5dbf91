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
