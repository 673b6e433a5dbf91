package watchdog

import (
	"bytes"
	"reflect"
	"testing"
)

func TestRecord(t *testing.T) {
	for _, r := range []Record{
		{}, {Kind: Ended, Index: 4095, A: 256, B: 1 << 40, C: 1}, {Kind: Stop, A: -1},
	} {
		b := r.Bytes()
		if len(b) != RecordSize || ParseRecord(b) != r {
			t.Errorf("decoded %+v from %d bytes, want %+v", ParseRecord(b), len(b), r)
		}
	}
}

// FuzzParseSpec: what can be decoded is encoded to the same.
func FuzzParseSpec(f *testing.F) {
	spec := Spec{Crash: Crash{Trace: 1, Stderr: Null, Path: "/x", Line: "crashed"},
		Workers: []Worker{
			{
				Path: "/bin/sh", Args: []string{"sh", "-c", ""}, Env: []string{"A=1"},
				Files: [3]int{0, Null, 7},
			},
			{Path: "x", Dir: "/tmp", StartAt: 1 << 40, CPUs: []int{0, 8191}, Node: AnyNode},
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
			t.Fatalf("decoded %+v, %v, want %+v", again, err, s)
		}
	})
}
