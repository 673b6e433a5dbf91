// Command mutants measures the tests: it puts each fault of dev/mutants into a copy of the sources,
// runs the test that is to find it, and prints a table. dev/mutants.md describes the files.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A test may take limit without a fault, and limitWithFault with one: some then wait for their own
// limit of 60 s.
const limit, limitWithFault = 60 * time.Second, 90 * time.Second

func main() {
	root := flag.String("root", "..", "the repository")
	run := flag.String("run", "", "only the mutants whose names match this regular expression")
	find := flag.Bool("find", false, "instead of running the named tests look for others that find it")
	within := flag.Duration("within", limit, "how long the tests of a package may take with -find")
	flag.Parse()
	if err := measure(*root, *run, *find, *within); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func measure(root, run string, find bool, within time.Duration) error {
	selected, err := regexp.Compile(run)
	if err != nil {
		return err
	}
	all, err := readMutants(filepath.Join(root, "dev", "mutants"))
	if err != nil {
		return err
	}
	t, err := copyTree(root)
	if err != nil {
		return err
	}
	defer t.remove()
	var some []mutant
	for _, m := range all {
		if selected.MatchString(m.name) {
			some = append(some, m)
		}
	}
	if find {
		return findAll(t, some, within)
	}
	return runAll(t, some)
}

// runAll prints a row for each mutant when it is known. The error says how many were not found, or
// could not be tried.
func runAll(t *tree, all []mutant) error {
	fmt.Println("| mutant | happened | test | result | s | note |\n|---|---|---|---|---|---|")
	failed := 0
	for _, m := range all {
		result, took, err := t.try(m)
		if err != nil {
			result = "ERROR"
			fmt.Fprintf(os.Stderr, "%s: %v\n", m.name, err)
		}
		if result == "NOT FOUND" || err != nil {
			failed++
		}
		fmt.Printf("| %s | %s | %s | %s | %.1f | %s |\n", m.name, cmp.Or(m.happened, "invented"),
			cmp.Or(m.test.String(), "none"), result, took.Seconds(), m.note)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d mutants were not found, or could not be tried", failed, len(all))
	}
	return nil
}

// findAll prints the tests that fail with each mutant, in the first package that has one.
func findAll(t *tree, all []mutant, within time.Duration) error {
	for _, m := range all {
		tests, err := t.find(m, within)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", m.name, err)
		case len(tests) == 0:
			fmt.Println(m.name+":", "no test below", within)
		default:
			fmt.Println(m.name+":", strings.Join(tests, ", "))
		}
	}
	return nil
}

// mutant is a patch with a header of lines "name: value".
type mutant struct {
	name     string // of the file, without ".patch"
	path     string // of the file
	file     string // that it changes, relative to the repository
	happened string // the commit that corrected it; "" if it is invented
	note     string
	test     test // that finds it; the zero value if none does
}

// test is a test of a package, or a subtest, such as TestScripts/check.
type test struct{ pkg, name string }

func (t test) String() string { return strings.TrimSpace(t.pkg + " " + t.name) }

func readMutants(dir string) (all []mutant, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("no mutants in %q", dir)
	}
	for _, path := range paths {
		m, errRead := readMutant(path)
		all, err = append(all, m), errors.Join(err, errRead)
	}
	return all, err
}

func readMutant(path string) (mutant, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return mutant{}, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return mutant{}, err
	}
	m := mutant{name: strings.TrimSuffix(filepath.Base(path), ".patch"), path: path}
	head, diff, _ := strings.Cut(string(text), "\ndiff --git a/")
	m.file, _, _ = strings.Cut(diff, " ")
	given := map[string]string{}
	for line := range strings.Lines(head) {
		name, value, _ := strings.Cut(line, ":")
		given[name] = strings.TrimSpace(value)
	}
	for _, name := range []string{"fault", "happened", "test"} {
		if given[name] == "" {
			return mutant{}, fmt.Errorf("cannot read mutant %q: no line %q", path, name)
		}
	}
	if m.note = given["note"]; given["happened"] != "no" {
		m.happened = given["happened"]
	}
	if given["test"] != "none" {
		m.test.pkg, m.test.name, _ = strings.Cut(given["test"], " ")
	}
	return m, nil
}
