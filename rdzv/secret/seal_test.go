package secret

import (
	"bytes"
	"testing"
)

func TestSeal(t *testing.T) {
	key, text := NewKey(), []byte("DATA=a text that nobody else may read")
	sealed := key.Seal("export", text)
	if got, err := key.Open("export", sealed); err != nil || !bytes.Equal(got, text) {
		t.Fatalf("opened %q, %v", got, err)
	}
	if bytes.Contains(sealed, []byte("DATA")) || bytes.Equal(sealed, key.Seal("export", text)) {
		t.Error("the text is readable, or equal texts look equal")
	}
	if got, err := key.Open("other", sealed); err == nil {
		t.Errorf("opened for another purpose: %q", got)
	}
	if got, err := NewKey().Open("export", sealed); err == nil {
		t.Errorf("opened with another key: %q", got)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := key.Open("export", changed); err == nil {
			t.Errorf("opened with a changed byte %d", i)
		}
		if _, err := key.Open("export", sealed[:i]); err == nil {
			t.Errorf("opened the first %d bytes", i)
		}
	}
}
