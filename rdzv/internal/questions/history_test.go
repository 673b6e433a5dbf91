package questions

import (
	"testing"
	"time"
)

func TestHistory(t *testing.T) {
	var h history
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	for _, row := range []struct {
		second    int
		rev, want int64
	}{{0, 10, 0}, {30, 20, 0}, {60, 30, 10}, {61, 40, 0}, {125, 50, 40}, {500, 60, 50}} {
		if got := h.add(row.rev, at(row.second), time.Minute); got != row.want {
			t.Errorf("after revision %d: got %d, want %d", row.rev, got, row.want)
		}
	}
	if len(h.list) != 1 {
		t.Errorf("%d questions are kept", len(h.list))
	}
}
