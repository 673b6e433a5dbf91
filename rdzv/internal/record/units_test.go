package record

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

// A duration is a number of seconds in JSON, and is read again exactly.
func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 12500 * time.Millisecond: "12.5", time.Nanosecond: "1e-9", -time.Minute: "-60",
		1234567 * time.Microsecond: "1.234567", 100*time.Hour + 1: "360000.000000001",
	} {
		b, err := json.Marshal(Seconds(d))
		if err != nil || string(b) != want {
			t.Errorf("%v: %s, %v; want %s", d, b, err, want)
		}
		var again Seconds
		if err := json.Unmarshal(b, &again); err != nil || time.Duration(again) != d {
			t.Errorf("%v: read again: %v, %v", d, again, err)
		}
	}
	for _, bad := range []string{`"1"`, `true`, `{}`, `[1]`, `1e300`} {
		var s Seconds
		if err := json.Unmarshal([]byte(bad), &s); err == nil {
			t.Errorf("%s: read as %v", bad, s)
		}
	}
}

// A signal is its name in JSON, and is read again.
func TestSignal(t *testing.T) {
	for s, want := range map[Signal]string{
		0: `""`, 9: `"SIGKILL"`, 15: `"SIGTERM"`, 40: `"signal 40"`, math.MaxInt32: `"signal 2147483647"`,
	} {
		b, err := json.Marshal(s)
		if err != nil || string(b) != want {
			t.Errorf("%d: %s, %v; want %s", int(s), b, err, want)
		}
		var again Signal
		if err := json.Unmarshal(b, &again); err != nil || again != s {
			t.Errorf("%d: read again: %d, %v", int(s), int(again), err)
		}
	}
	for _, bad := range []string{`"SIGNONE"`, `"signal x"`, `9`} {
		var s Signal
		if err := json.Unmarshal([]byte(bad), &s); err == nil {
			t.Errorf("%s: read as %d", bad, int(s))
		}
	}
}
