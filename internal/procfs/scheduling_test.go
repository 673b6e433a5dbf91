package procfs

import (
	"os"
	"testing"
	"testing/fstest"
	"time"
)

func TestReadScheduling(t *testing.T) {
	for text, want := range map[string]Scheduling{
		// Linux 5.10: an idle shell, and python3 at nice 19 beside a busy process
		"1634405 291137 23\n":           {1634405, 291137},
		"51260112 3460116853 41\n":      {51260112, 3460116853},
		"0 0 0\n":                       {}, // CONFIG_SCHED_INFO without CONFIG_SCHEDSTATS
		"":                              {},
		"7\n":                           {},
		"7 -1 0\n":                      {},
		"7 x 0\n":                       {},
		"9223372036854775808 1 0\n":     {}, // 2^63
		"9223372036854775807 2 0 4 5\n": {1<<63 - 1, 2},
	} {
		proc := fstest.MapFS{"71/schedstat": &fstest.MapFile{Data: []byte(text)}}
		if got := ReadScheduling(proc, 71); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	if got := ReadScheduling(fstest.MapFS{}, 71); got != (Scheduling{}) {
		t.Errorf("without a file: got %v, want nothing", got)
	}
}

func TestSchedulingOfThisProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip(err)
	}
	if got := ReadScheduling(System, os.Getpid()); got.Ran <= 0 || got.Ran > time.Hour {
		t.Errorf("got %v, want the CPU time of the main thread", got)
	}
}

// FuzzParseScheduling: no text gives a time below 0, or one without the other number.
func FuzzParseScheduling(f *testing.F) {
	for _, text := range []string{"1634405 291137 23\n", "0 0 0\n", "7", "-1 -1 0", "1 99999999999999999999"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if s := parseScheduling(text); s.Ran < 0 || s.Waited < 0 {
			t.Errorf("%q: got %v", text, s)
		}
	})
}
