package nettcp

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	a, b := nativeWord(10, 77, 0, 12), nativeWord(10, 77, 0, 11)
	mapped := strings.Repeat("0", 16) + nativeWord(0, 0, 0xff, 0xff)
	const rest = " 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1\n"
	text := "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n" +
		"   0: " + a + ":8C11 " + b + ":BFED 01" + rest +
		"   1: 00000000:0016 00000000:0000 0A" + rest +
		"   2: " + mapped + b + ":0016 " + mapped + a + ":1234 01 00000000:00000000\n" +
		"garbage\n   3: " + a + ":8C11 " + b + " 01\n"
	var got []string
	for _, pair := range read(strings.NewReader(text)) {
		got = append(got, pair.local.String()+">"+pair.remote.String())
	}
	want := "10.77.0.12:35857>10.77.0.11:49133 10.77.0.11:22>10.77.0.12:4660"
	if strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// nativeWord returns four bytes of an address as the kernel of this machine prints them.
func nativeWord(b ...byte) string { return fmt.Sprintf("%08X", binary.NativeEndian.Uint32(b)) }

func FuzzLine(f *testing.F) {
	f.Add("   0: 0C004D0A:8C11 0B004D0A:BFED 01 00000000:00000000")
	f.Fuzz(func(t *testing.T, line string) {
		pair, _, err := parseLine(line)
		if err == nil && !(pair.local.IsValid() && pair.remote.IsValid()) {
			t.Errorf("parseLine(%q) = %v", line, pair)
		}
	})
}
