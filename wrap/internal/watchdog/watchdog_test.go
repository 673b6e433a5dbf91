package watchdog

import (
	"bytes"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func TestRecord(t *testing.T) {
	for _, r := range []Record{{}, {Kind: Ended, Index: 4095, A: 256, B: 1 << 40, C: 1}, {Kind: Stop, A: -1}} {
		b := r.Bytes()
		if len(b) != RecordSize || ParseRecord(b) != r {
			t.Errorf("%+v became %+v in %d bytes", r, ParseRecord(b), len(b))
		}
	}
}

func FuzzParseSpec(f *testing.F) {
	spec := Spec{Group: 12, Workers: []Worker{
		{Path: "/bin/sh", Args: []string{"sh", "-c", ""}, Env: []string{"A=1"}, Files: [3]int{0, Null, 7}},
		{Path: "x", Dir: "/tmp"},
	}}
	f.Add(spec.Bytes())
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseSpec(b)
		if err != nil {
			return
		}
		if again, err := ParseSpec(s.Bytes()); err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%+v became %+v, %v", s, again, err)
		}
	})
}

func TestSignalSet(t *testing.T) {
	const status = "Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001004\nSigCgt:\t8000000000000000\n"
	for _, row := range []struct {
		name string
		has  []syscall.Signal
	}{{"SigBlk:", []syscall.Signal{1}}, {"SigIgn:", []syscall.Signal{3, 13}}, {"SigCgt:", []syscall.Signal{64}}, {"ShdPnd:", nil}} {
		set := signalSetIn(status, row.name)
		for s := syscall.Signal(1); s <= 64; s++ {
			want := false
			for _, h := range row.has {
				want = want || h == s
			}
			if set.Has(s) != want {
				t.Errorf("%s %d: %v", row.name, int(s), set.Has(s))
			}
		}
	}
}

// FuzzSignalSet: whatever stands in the file, it is read without harm, and a line is found only at its beginning.
func FuzzSignalSet(f *testing.F) {
	f.Add("SigIgn:\t0000000000001004\n")
	f.Add("SigIgn:")
	f.Add("SigIgn:\tzz\n\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		if set := signalSetIn(text, "SigIgn:"); set != 0 && !strings.Contains("\n"+text, "\nSigIgn:") {
			t.Fatalf("%x", set)
		}
	})
}
