package nettcp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
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

// The port is 0x8C11. A socket that has only a local port of that number is another one.
func TestInodes(t *testing.T) {
	a, b := nativeWord(10, 77, 0, 12), nativeWord(10, 77, 0, 11)
	line := func(local, remote, state, inode string) string {
		return "   0: " + local + " " + remote + " " + state +
			" 00000000:00000000 00:00000000 00000000     0        0 " +
			"" + inode + " 1 0 20 4 30 10 -1\n"
	}
	mapped := strings.Repeat("0", 16) + nativeWord(0, 0, 0xff, 0xff)
	zero := strings.Repeat("0", 32)
	proc := fstest.MapFS{
		"7/net/tcp": {Data: []byte("  sl  local_address rem_address   st ... inode\n" +
			line(a+":BFED", b+":8C11", "01", "1") + // connected
			line(a+":BFEE", b+":8C11", "02", "2") + // being connected
			line(a+":BFEF", b+":8C11", "06", "0") + // closed
			line(a+":8C11", b+":BFED", "01", "3") +
			line("00000000:8C11", "00000000:0000", "0A", "4") +
			line(a+":0016", b+":8C12", "01", "5") + "garbage :8C11 \n 0: x:8C11 y:8C11 01\n")},
		"7/net/tcp6": {Data: []byte(line(zero+":8C11", zero+":0000", "0A", "6") +
			line(mapped+a+":BFED", mapped+b+":8C11", "01", "7"))},
		"8/net/tcp": {Data: []byte(line(a+":BFED", b+":8C11", "01", "8"))},
	}
	for pid, want := range map[string][]uint64{"7": {1, 4, 6, 7}, "8": {8}, "9": nil} {
		if got := slices.Sorted(maps.Keys(Inodes(proc, pid, 0x8C11))); !slices.Equal(got, want) {
			t.Errorf("process %s: got %v, want %v", pid, got, want)
		}
	}
	peers := Peers(proc, "7")
	if n, p := len(peers), peers[7].String(); n != 5 || p != "10.77.0.11:35857" {
		t.Errorf("the sockets of process 7 have the peers %v", peers)
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
