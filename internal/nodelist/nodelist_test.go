package nodelist

import (
	"strings"
	"testing"
)

func TestShort(t *testing.T) {
	for names, want := range map[string]string{
		"":                                     "",
		"a":                                    "a",
		"node1 node2":                          "node1, node2",
		"node1 node2 node3":                    "node1-node3",
		"n08 n09 n10 n12":                      "n08-n10, n12",
		"n8 n9 n10":                            "n8-n10",
		"n1.x n2.x n3.x n4.y":                  "n1.x-n3.x, n4.y",
		"10.0.0.9 10.0.0.10 10.0.0.11 fd77::1": "10.0.0.9-10.0.0.11, fd77::1",
		"a b c":                                "a, b, c",
		"n3 n2 n1":                             "n3, n2, n1",
	} {
		if got := Short(strings.Fields(names)); got != want {
			t.Errorf("Short(%s) = %q, want %q", names, got, want)
		}
	}
}
