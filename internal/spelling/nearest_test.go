package spelling

import (
	"testing"
)

func TestNearest(t *testing.T) {
	words := []string{"exec", "env", "get-rank", "version"}
	for _, c := range [][2]string{
		{"exce", "exec"}, {"exe", "exec"}, {"getrank", "get-rank"}, {"versoin", "version"},
		{"evn", "env"}, {"e", ""}, {"python3", ""}, {"", ""},
	} {
		if got := Nearest(c[0], words); got != c[1] {
			t.Errorf("Nearest(%q) = %q, want %q", c[0], got, c[1])
		}
	}
}
