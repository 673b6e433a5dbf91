package stall

import (
	"testing"
	"testing/fstest"
	"time"
)

// The wait of the process that waited longest counts, of a new one all of it, and nothing where the
// kernel does not tell it.
func TestWaits(t *testing.T) {
	const ms = time.Millisecond
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	var w waits
	for i, look := range []struct {
		proc fstest.MapFS
		want time.Duration
	}{
		{fstest.MapFS{"71/schedstat": file("5 3000000 1\n"), "72/schedstat": file("5 2000000 1\n")}, 3 * ms},
		{fstest.MapFS{"71/schedstat": file("5 4000000 1\n"), "72/schedstat": file("5 7000000 1\n")}, 5 * ms},
		{fstest.MapFS{"71/schedstat": file("5 4000000 1\n")}, 0},
		{fstest.MapFS{"71/schedstat": file("")}, 0},
		{fstest.MapFS{}, 0},
		{fstest.MapFS{"71/schedstat": file("5 9000000 1\n")}, 9 * ms}, // another process
	} {
		if got := w.since(time.Time{}, look.proc, []int{71, 72}); got != look.want {
			t.Errorf("look %d: waited %v, want %v", i, got, look.want)
		}
	}
}

// A wait counts while it lasts, and the kernel's count of it adds what was not known before.
func TestWaitThatLasts(t *testing.T) {
	const step = time.Second
	for name, looks := range map[string][]struct {
		schedstat, state string
		want             time.Duration
	}{
		"waits": {
			{"5 0 1", "R", 0}, {"5 0 1", "R", step}, {"5 0 1", "R", step},
			{"6 2500000000 2", "S", step / 2}, {"6 2500000000 2", "S", 0},
		},
		"sleeps": {{"5 0 1", "S", 0}, {"5 0 1", "S", 0}},
		"has become ready after the look": {
			{"5 0 1", "S", 0}, {"5 0 1", "R", 0}, {"6 200000000 2", "R", step / 5},
		},
		"ran between the looks": {
			{"5 0 1", "R", 0}, {"6 0 1", "R", 0}, {"6 100000000 1", "R", step / 10},
		},
		"waits again": {
			{"5 0 1", "R", 0}, {"5 0 1", "R", step}, {"6 1000000000 2", "R", 0},
			{"6 1000000000 2", "R", step}, {"6 1000000000 2", "", step}, // it has ended
		},
		"a kernel that does not count": {{"0 0 0", "R", 0}, {"0 0 0", "R", 0}, {"0 0 0", "R", 0}},
	} {
		var w waits
		now := time.Unix(1e9, 0)
		for i, look := range looks {
			proc := fstest.MapFS{"71/schedstat": &fstest.MapFile{Data: []byte(look.schedstat)}}
			if look.state != "" {
				proc["71/stat"] = &fstest.MapFile{Data: []byte("71 (python3) " + look.state + statRest)}
			}
			if got := w.since(now, proc, []int{71}); got != look.want {
				t.Errorf("%s, look %d: waited %v, want %v", name, i, got, look.want)
			}
			now = now.Add(step)
		}
	}
}

// statRest are the fields of /proc/PID/stat after the state.
const statRest = " 1 71 71 0 -1 4194560 0 0 0 0 0 0 0 0 19 19 1 0 100 0 0\n"
