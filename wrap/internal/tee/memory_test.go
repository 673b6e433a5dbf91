package tee

import (
	"strings"
	"testing"
)

// The last traceback is found in a stream, however it is read, as long as it is kept.
func TestTraceback(t *testing.T) {
	const first, last = "Traceback (most recent call last):\n  File \"a.py\"\nKeyError: 1\n",
		"[rank2]: Traceback (most recent call last):\n[rank2]:   File \"b.py\"\n[rank2]: ValueError: 2\n"
	filler := strings.Repeat("x", TailSize-1) + "\n"
	for name, c := range map[string]struct{ stream, want string }{
		"none":       {"text\nTraceback\n", ""},
		"only":       {last, last},
		"last":       {"text\n" + first + "more\n" + last + "after\n", last + "after\n"},
		"filled":     {filler + first, first},
		"over":       {first + filler, ""},
		"almost":     {first + filler[:TailSize-len(first)], first + filler[:TailSize-len(first)]},
		"start over": {first + filler[:TailSize-len(first)+1], ""},
	} {
		for _, size := range []int{1, 7, 40, 4096, len(c.stream)} {
			if size == 1 && len(c.stream) > TailSize/2 {
				continue
			}
			tail := NewTail(func() {})
			for rest := c.stream; rest != ""; {
				n := min(size, len(rest))
				tail.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			text, at := tail.Traceback()
			if string(text) != c.want || (at == 0) != (c.want == "") {
				t.Errorf("%s, read by %d bytes: %.80q at %d, want %.80q", name, size, text, at, c.want)
			}
			whole := c.stream[max(0, len(c.stream)-TailSize):]
			if got := string(tail.Bytes()); got != whole {
				t.Errorf("%s, read by %d bytes: %d bytes are kept, want %d", name, size, len(got), len(whole))
			}
		}
	}
}
