package exitorder

import (
	"context"
	"os"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"rdzv/envmap"
)

func TestTurnOf(t *testing.T) {
	openMPI := func(local, size int) envmap.Placement {
		return envmap.Placement{Launcher: envmap.OpenMPI4, LocalRank: local, LocalSize: size}
	}
	hydra := openMPI(0, 4)
	hydra.Launcher = envmap.Hydra
	var none First
	failed := func(own bool, local int) First { return First{true, own, local} }
	elsewhere := failed(false, envmap.Unknown)
	for name, c := range map[string]struct {
		place  envmap.Placement
		env    envmap.Env
		code   int
		parent string
		want   turn
		first  First
	}{
		"last of 4":     {openMPI(3, 4), nil, 7, "mpirun", exitAtOnce, none},
		"third of 4":    {openMPI(2, 4), nil, 7, "mpirun", exitAfterSIGCONT, none},
		"second of 4":   {openMPI(1, 4), nil, 7, "mpirun", exitAfterSIGTERM, none},
		"first of 4":    {openMPI(0, 4), nil, 7, "orted", exitAfterSIGTERM, none},
		"first of 2":    {openMPI(0, 2), nil, 7, "orted", exitAfterSIGCONT, none},
		"unknown":       {openMPI(envmap.Unknown, envmap.Unknown), nil, 7, "mpirun", exitAtOnce, none},
		"alone":         {openMPI(0, 1), nil, 7, "orted", exitAtOnce, none},
		"first of 31":   {openMPI(0, 31), nil, 7, "mpirun", exitAfterSIGTERM, none},
		"first of 32":   {openMPI(0, 32), nil, 7, "mpirun", exitAtOnce, none},
		"success":       {openMPI(0, 4), nil, 0, "mpirun", exitAtOnce, none},
		"a script":      {openMPI(0, 4), nil, 7, "sh", exitAtOnce, none},
		"a dead mpirun": {openMPI(0, 4), nil, 7, "", exitAtOnce, none},
		"Hydra":         {hydra, nil, 7, "mpirun", exitAtOnce, none},
		"no abort": {openMPI(0, 4), envmap.Env{"OMPI_MCA_orte_abort_on_non_zero_status": "0"},
			7, "mpirun", exitAtOnce, none},
		"a longer wait": {openMPI(0, 4), envmap.Env{"OMPI_MCA_odls_base_sigkill_timeout": "2"},
			7, "mpirun", exitAtOnce, none},
		"recovery": {openMPI(0, 4), envmap.Env{"OMPI_MCA_orte_enable_recovery": "1"},
			7, "mpirun", exitAtOnce, none},
		"the failed one":          {openMPI(0, 4), nil, 7, "mpirun", exitAtOnce, failed(true, 0)},
		"last, the first failed":  {openMPI(3, 4), nil, 7, "mpirun", exitAfterSIGCONT, failed(false, 0)},
		"third, the first failed": {openMPI(2, 4), nil, 7, "mpirun", exitAfterSIGTERM, failed(false, 0)},
		"third, the last failed":  {openMPI(2, 4), nil, 7, "mpirun", exitAfterSIGCONT, failed(false, 3)},
		"first, the last failed":  {openMPI(0, 4), nil, 7, "mpirun", exitAfterSIGTERM, failed(false, 3)},
		"last, one elsewhere":     {openMPI(3, 4), nil, 7, "orted", exitAfterSIGCONT, elsewhere},
		"third, one elsewhere":    {openMPI(2, 4), nil, 7, "orted", exitAfterSIGTERM, elsewhere},
		"alone, one elsewhere":    {openMPI(0, 1), nil, 7, "orted", exitAfterSIGCONT, elsewhere},
		"unknown, one elsewhere": {openMPI(envmap.Unknown, envmap.Unknown), nil, 7, "orted",
			exitAfterSIGCONT, elsewhere},
		"of 32, the first failed": {openMPI(5, 32), nil, 7, "mpirun", exitAfterSIGCONT, failed(false, 0)},
		"of 32, the failed one":   {openMPI(5, 32), nil, 7, "mpirun", exitAtOnce, failed(true, 5)},
	} {
		if got := turnOf(c.place, c.env, c.code, c.parent, c.first); got != c.want {
			t.Errorf("%s: turn %d, want %d", name, got, c.want)
		}
	}
}

// It is an agent's turn when mpirun has sent the signal and sleeps, not earlier.
func TestTurnAwait(t *testing.T) {
	for name, c := range map[string]struct {
		turn   turn
		signal os.Signal
		state  string // of mpirun, in /proc/PID/stat
		want   bool   // await returns
	}{
		"at once":                          {exitAtOnce, nil, "R", true},
		"SIGCONT, mpirun sleeps":           {exitAfterSIGCONT, syscall.SIGCONT, "S", true},
		"SIGCONT, mpirun runs":             {exitAfterSIGCONT, syscall.SIGCONT, "R", false},
		"SIGCONT, mpirun waits for a disk": {exitAfterSIGCONT, syscall.SIGCONT, "D", false},
		"SIGCONT, mpirun has ended":        {exitAfterSIGCONT, syscall.SIGCONT, "", true},
		"SIGTERM before SIGCONT was seen":  {exitAfterSIGCONT, syscall.SIGTERM, "S", true},
		"SIGCONT for the third":            {exitAfterSIGTERM, syscall.SIGCONT, "S", false},
		"SIGTERM for the third":            {exitAfterSIGTERM, syscall.SIGTERM, "S", true},
		"no signal":                        {exitAfterSIGCONT, nil, "S", false},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			if c.state != "" {
				root["proc/7/stat"] = &fstest.MapFile{Data: []byte("7 (mpirun) (4)) " + c.state + " 1 7")}
			}
			s := Signals{make(chan os.Signal, 1), make(chan os.Signal, 1)}
			switch c.signal {
			case syscall.SIGCONT:
				s.cont <- c.signal
			case syscall.SIGTERM:
				s.term <- c.signal
			}
			limit := time.Minute
			if !c.want {
				limit = 20 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			s.await(ctx, c.turn, root, 7)
			if got := ctx.Err() == nil; got != c.want {
				t.Errorf("await returned before its context ended: %t, want %t", got, c.want)
			}
		})
	}
}
