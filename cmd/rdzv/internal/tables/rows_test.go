package tables

import (
	"strings"
	"testing"
)

func TestRows(t *testing.T) {
	rows := []Row{
		{"rank", "2", "RANK=2"},
		{"local rank", "unknown", "no launcher"},
		{"job", strings.Repeat("0123456789", 3), "PMI_ID"},
		{"note", "", "a reason"},
		{"alone", "value", ""},
		{"control", "a\x1b[31m\n\"b\"", "x"},
	}
	want := `rank        2        RANK=2
local rank  unknown  no launcher
job         012345678901234567890123456789
              PMI_ID
note        a reason
alone       value
control     a\x1b[31m\n"b"  x
`
	if got := Rows(rows); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
