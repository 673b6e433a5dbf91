package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tree is a copy of the sources, also of what has not been committed. Packages are compiled with
// -trimpath, so that the cache has those that a mutant does not change.
type tree struct {
	dir     string
	mutated string        // the compiled tests of a package with a mutant
	clean   string        // the same without one, of package
	pkg     string        // "" if there is none yet
	passed  map[test]bool // without a mutant
}

func copyTree(root string) (*tree, error) {
	list, err := output(root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rdzv-mutants-")
	if err != nil {
		return nil, err
	}
	t := &tree{dir: filepath.Join(dir, "rdzv"), mutated: filepath.Join(dir, "mutated"),
		clean: filepath.Join(dir, "clean"), passed: map[test]bool{}}
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		err := copyFile(filepath.Join(root, name), filepath.Join(t.dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it has been removed, but not committed
			return nil, errors.Join(err, t.remove())
		}
	}
	return t, nil
}

func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, info.Mode().Perm())
}

func (t *tree) remove() error { return os.RemoveAll(filepath.Dir(t.dir)) }

// try runs the test of a mutant with it, and before once without any. The time is that of the test
// with the mutant, without its compilation.
func (t *tree) try(m mutant) (result string, took time.Duration, err error) {
	if err := t.check(m.test); err != nil {
		return "", 0, err
	}
	if err := t.apply(m); err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, t.apply(m, "--reverse")) }()
	if m.test.name == "" {
		_, err := output(t.dir, "go", "build", "-o", os.DevNull, "./"+filepath.Dir(m.file))
		return "not found", 0, err
	}
	if err := t.compile(m.test.pkg, t.mutated); err != nil {
		return "", 0, err
	}
	failed, took, err := t.run(t.mutated, m.test, limitWithFault)
	if errors.Is(err, context.DeadlineExceeded) || err == nil && len(failed) == 0 {
		return "NOT FOUND", took, nil
	}
	return "found", took, err
}

// check runs a test without a mutant, which it must pass.
func (t *tree) check(one test) error {
	if one.name == "" || t.passed[one] {
		return nil
	}
	if t.pkg != one.pkg {
		t.pkg = ""
		if err := t.compile(one.pkg, t.clean); err != nil {
			return err
		}
		t.pkg = one.pkg
	}
	failed, _, err := t.run(t.clean, one, limit)
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("%v fails without the mutant", one)
	}
	t.passed[one] = err == nil
	return err
}

func (t *tree) apply(m mutant, options ...string) error {
	_, err := output(t.dir, "git", append(append([]string{"apply"}, options...), m.path)...)
	return err
}

// find returns the tests that fail with a mutant, of its package, or of the first that imports it.
func (t *tree) find(m mutant, within time.Duration) (failed []string, err error) {
	packages, err := t.users(m)
	if err != nil {
		return nil, err
	}
	if err := t.apply(m); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.apply(m, "--reverse")) }()
	for _, pkg := range packages {
		if err := t.compile(pkg, t.mutated); err != nil {
			return nil, err
		}
		names, took, err := t.run(t.mutated, test{pkg: pkg}, within)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		for _, name := range names {
			failed = append(failed, pkg+" "+name)
		}
		if len(failed) > 0 {
			return failed, nil
		}
		fmt.Fprintf(os.Stderr, "%s: %s: nothing in %v\n", m.name, pkg, took.Round(time.Second))
	}
	return nil, nil
}

// users are the mutated package and those that import it, those with few dependencies first.
func (t *tree) users(m mutant) (packages []string, err error) {
	text, err := output(t.dir, "go", "list", "-f",
		`{{len .Deps}} {{.ImportPath}}{{range .Deps}} {{.}}{{end}}`, "./...")
	if err != nil {
		return nil, err
	}
	module, err := output(t.dir, "go", "list", "-m")
	if err != nil {
		return nil, err
	}
	own := strings.TrimSpace(module) + "/" + filepath.Dir(m.file)
	byDeps := map[string]int{}
	for line := range strings.Lines(text) {
		var n int
		words := strings.Fields(line)
		if slices.Contains(words, own) && !strings.Contains(words[1], "/integration") {
			fmt.Sscan(words[0], &n)
			pkg := "./" + strings.TrimPrefix(words[1], strings.TrimSpace(module)+"/")
			packages, byDeps[pkg] = append(packages, pkg), n
		}
	}
	slices.SortFunc(packages, func(a, b string) int { return byDeps[a] - byDeps[b] })
	return packages, nil
}

var failure = regexp.MustCompile(`--- FAIL: (\S+)`)

// compile makes a program of the tests of a package; none if it has no tests.
func (t *tree) compile(pkg, binary string) error {
	if err := os.Remove(binary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err := output(t.dir, "go", "test", "-c", "-vet=off", "-o", binary, pkg)
	return err
}

// run runs a test, or all of the package if it has no name, until one has failed. It returns the
// names of those that fail.
func (t *tree) run(binary string, one test, within time.Duration) (
	failed []string, took time.Duration, err error,
) {
	if _, err := os.Stat(binary); err != nil && one.name == "" {
		return nil, 0, nil // it has no tests
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	pattern := ""
	if one.name != "" {
		pattern = "^" + strings.ReplaceAll(one.name, "/", "$/^") + "$"
	}
	c := exec.CommandContext(ctx, binary, "-test.run", pattern, "-test.v", "-test.failfast")
	c.Dir, c.WaitDelay = filepath.Join(t.dir, one.pkg), time.Second
	begin := time.Now()
	text, err := c.CombinedOutput()
	took = time.Since(begin)
	_, exited := errors.AsType[*exec.ExitError](err)
	for _, match := range failure.FindAllSubmatch(text, -1) {
		failed = append(failed, string(match[1]))
	}
	switch {
	case len(failed) > 0:
		return failed, took, nil
	case ctx.Err() != nil:
		return nil, took, ctx.Err()
	case exited && bytes.Contains(text, []byte("=== RUN")): // it has crashed
		return []string{lastRun(text)}, took, nil
	case err == nil && one.name != "" && !bytes.Contains(text, []byte("--- PASS: "+one.name+" ")):
		err = fmt.Errorf("there is no test %v", one)
	}
	return nil, took, err
}

// lastRun is the test that began last.
func lastRun(text []byte) string {
	_, name, _ := bytes.Cut(text[bytes.LastIndex(text, []byte("=== RUN")):], []byte("   "))
	name, _, _ = bytes.Cut(name, []byte("\n"))
	return string(name)
}

// output is what a command prints to stdout; the error has its stderr.
func output(dir, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	text, err := c.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, e.Stderr)
	}
	return string(text), err
}
