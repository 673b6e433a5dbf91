package procfs

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

func TestParseSignals(t *testing.T) {
	for _, row := range []struct {
		text string
		want Signals
	}{
		{"Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001004\n" +
			"SigCgt:\t8000000000000000\n",
			Signals{Blocked: 1, Ignored: 0x1004, Caught: 1 << 63}},
		{"SigIgn:\t0000000000000002", Signals{Ignored: 2}},
		{"NSpid:\t71\t1\nSigIgn:\t0000000000000002", Signals{Ignored: 2, Init: true}},
		{"NSpid:\t1\n", Signals{}},
		{"NSpid:\t71\t11\n", Signals{}},
		{"NSpid:\n", Signals{}},
		{"ShdPnd:\t0000000000000002\nxSigIgn:\t0000000000000002\nSigIgn:\tzz\nSigCgt\n", Signals{}},
	} {
		if got := parseSignals([]byte(row.text)); got != row.want {
			t.Errorf("parseSignals(%q) = %+v, want %+v", row.text, got, row.want)
		}
	}
}

func TestSignalSetHas(t *testing.T) {
	set := SignalSet(1<<(syscall.SIGQUIT-1) | 1<<63)
	for s := syscall.Signal(1); s <= 64; s++ {
		if want := s == syscall.SIGQUIT || s == 64; set.Has(s) != want {
			t.Errorf("%x has signal %d: %v, want %v", set, int(s), set.Has(s), want)
		}
	}
}

func TestReadSignalsOfThisProcess(t *testing.T) {
	signal.Ignore(syscall.SIGUSR2)
	defer signal.Reset(syscall.SIGUSR2)
	s, err := ReadSignals(System, os.Getpid())
	if err != nil || !s.Ignored.Has(syscall.SIGUSR2) || !s.Caught.Has(syscall.SIGSEGV) {
		t.Errorf("ReadSignals = %+v, %v", s, err)
	}
}

// FuzzParseSignals: a set is read only from a line that begins with its name.
func FuzzParseSignals(f *testing.F) {
	f.Add("SigIgn:\t0000000000001004\n")
	f.Add("SigIgn:")
	f.Add("SigIgn:\tzz\n\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		s := parseSignals([]byte(text))
		if s.Ignored != 0 && !strings.Contains("\n"+text, "\nSigIgn:") {
			t.Errorf("parseSignals(%q) = %+v", text, s)
		}
	})
}
