package gate

import (
	"strings"
	"testing"
)

func FuzzGreeting(f *testing.F) {
	f.Add("rdzv5 ok 10.0.0.1:1,[fe80::1]:2\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := strings.NewReader(text)
		words, err := readLine(r)
		if err == nil {
			parseGreeting(words)
		}
		if end := strings.IndexByte(text, '\n'); err == nil && r.Len() != len(text)-end-1 {
			t.Errorf("%q: %d bytes after the line are left to read", text, r.Len())
		}
	})
}
