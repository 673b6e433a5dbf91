// Package pagetest is for tests whose subject is described on a page: it compares the generated
// parts of the page, or writes them with the flag -update ("make docs").
package pagetest

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated parts of pages")

const end = "<!-- end -->"

// Part checks that a page has text between the lines "<!-- generated: NAME -->" and "<!-- end -->".
func Part(t *testing.T, page, name, text string) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin := "<!-- generated: " + name + " -->\n"
	before, rest, found := strings.Cut(string(data), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no lines %q and %q", page, begin, end)
	}
	File(t, page, before+begin+strings.TrimRight(text, "\n")+"\n"+end+after)
}

// File checks that a page is a text, or makes it so with -update.
func File(t *testing.T, page, want string) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	is := string(data)
	switch {
	case is == want:
	case *update:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not up to date: run \"make docs\"; %s", page, difference(is, want))
	}
}

// difference is the first line in which two texts differ.
func difference(is, want string) string {
	a, b := strings.Split(is, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "it has\n" + a[i] + "\nand should have\n" + b[i]
		}
	}
	return "lines are missing or too many at its end"
}
