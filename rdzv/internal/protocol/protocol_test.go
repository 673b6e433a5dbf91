package protocol

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestVersionOf(t *testing.T) {
	for magic, want := range map[string]int{
		Magic: Version, "rdzv1": 1, "rdzv2": 2, "rdzv37": 37,
		"rdzv": 0, "rdzv0": 0, "rdzv-1": 0, "rdzv+1": 0, "rdzv01": 0, "rdzv1.0": 0, "HTTP/1.1": 0,
		"rdzv99999999999999999999": 0, "": 0,
	} {
		if got := VersionOf(magic); got != want {
			t.Errorf("VersionOf(%q) = %d, want %d", magic, got, want)
		}
	}
}

// The page about compatibility names this version, and the message about the one before.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{fmt.Sprintf("has a version, now %d,", Version), Difference(Version - 1)} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/compatibility.md does not contain %q", want)
		}
	}
}
