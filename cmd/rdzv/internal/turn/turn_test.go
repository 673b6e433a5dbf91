package turn

import (
	"context"
	"os"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
)

// It is a task's turn when mpirun has sent the signal and sleeps, not earlier.
func TestTurnAwait(t *testing.T) {
	for name, c := range map[string]struct {
		turn   Turn
		signal os.Signal
		state  string // of mpirun, in /proc/PID/stat
		want   bool   // await returns
	}{
		"at once":                          {AtOnce, nil, "R", true},
		"SIGCONT, mpirun sleeps":           {AfterSIGCONT, syscall.SIGCONT, "S", true},
		"SIGCONT, mpirun runs":             {AfterSIGCONT, syscall.SIGCONT, "R", false},
		"SIGCONT, mpirun waits for a disk": {AfterSIGCONT, syscall.SIGCONT, "D", false},
		"SIGCONT, mpirun has ended":        {AfterSIGCONT, syscall.SIGCONT, "", true},
		"SIGTERM before SIGCONT was seen":  {AfterSIGCONT, syscall.SIGTERM, "S", true},
		"SIGCONT for the third":            {AfterSIGTERM, syscall.SIGCONT, "S", false},
		"SIGTERM for the third":            {AfterSIGTERM, syscall.SIGTERM, "S", true},
		"no signal":                        {AfterSIGCONT, nil, "S", false},
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
