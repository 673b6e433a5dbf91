// Package modulepath tests that this module can have a path from which others can fetch it: it sets
// one in a copy of the sources, and uses that as an outside user would. "make test-release" runs it.
package modulepath

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

var root = flag.String("root", "", "the `directory` of the sources")

var published = module.Version{Path: "example.org/team/rdzv", Version: "v1.0.0"}

func TestModulePath(t *testing.T) {
	if *root == "" {
		t.Fatal("cannot test without -root: run make test-release")
	}
	tree := copied(t)
	run(t, tree, nil, "scripts/set-module-path", published.Path)
	wantNothingLeft(t, tree)
	// The rules of imports, the examples beside the sources, and the order of initialisation.
	run(t, tree, nil, "go", "test", "-count=1", "-run", "Imports|Embed|Early|BeforeHeavy",
		"./internal/repo", "./cmd/rdzv", "./wrap")
	run(t, filepath.Join(tree, "tools"), nil, "go", "list", "./...")

	environ := outsideUser(t, tree)
	for _, name := range []string{"embed-agent", "embed-world", "embed-cluster"} {
		t.Run(name, func(t *testing.T) { useExample(t, environ, filepath.Join(tree, "examples", name)) })
	}
	t.Run("go install", func(t *testing.T) { install(t, environ) })
}

// A path that sorts behind reflect, one with a space and none are refused, and nothing is changed.
func TestRefusedPaths(t *testing.T) {
	tree := copied(t)
	for _, path := range []string{"sigs.example.org/rdzv", "example.org/my rdzv", ""} {
		cmd := exec.CommandContext(t.Context(), "scripts/set-module-path", path)
		cmd.Dir = tree
		if out, err := cmd.CombinedOutput(); err == nil || len(out) == 0 {
			t.Errorf("%q: %v, %s", path, err, out)
		}
	}
	if out := run(t, tree, nil, "go", "list", "-m"); out != "rdzv\n" {
		t.Errorf("the path is now %q", out)
	}
}

// copied is a copy of the sources as git knows them.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, *root, nil, "sh", "-c", "git ls-files -z --cached --others --exclude-standard | "+
		"tar -c --null -T - | tar -x -C "+dir)
	return dir
}

// wantNothingLeft checks that no import and no line of a go.mod, except comments, has the old path.
func wantNothingLeft(t *testing.T, tree string) {
	t.Helper()
	out := run(t, tree, nil, "sh", "-c", `grep -rnE --include=*.go `+
		`'^(import )?\s*([a-zA-Z0-9_.]+ )?"rdzv/[^"]*"$' . || true; `+
		`grep -rnE --include=go.mod '^[^/]*(^|\s)rdzv(/tools)?(\s|$)' . || true`)
	if out != "" {
		t.Errorf("the old path is left:\n%s", out)
	}
}

// outsideUser is the environment of a user who has only a proxy with the published module, and
// those modules that the build of rdzv has downloaded.
func outsideUser(t *testing.T, tree string) []string {
	t.Helper()
	proxy := t.TempDir()
	dir := filepath.Join(proxy, published.Path, "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(tree, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":"2026-01-02T03:04:05Z"}`, published.Version)
	for name, data := range map[string]string{"list": published.Version + "\n",
		published.Version + ".info": info, published.Version + ".mod": string(mod)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(dir, published.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := zip.CreateFromDir(f, published, tree); err != nil {
		t.Fatal(err)
	}
	downloads := strings.TrimSpace(run(t, tree, nil, "go", "env", "GOMODCACHE")) + "/cache/download"
	return []string{"GOPROXY=file://" + proxy + ",file://" + downloads, "GONOSUMDB=*", "GOSUMDB=off",
		"GOMODCACHE=" + t.TempDir(), "GOFLAGS=-mod=mod -modcacherw -trimpath", "CGO_ENABLED=0"}
}

// useExample builds an example far from the sources, and runs it if it needs no etcd.
func useExample(t *testing.T, environ []string, example string) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(example)); err != nil {
		t.Fatal(err)
	}
	run(t, dir, environ, "go", "mod", "edit", "-dropreplace", published.Path, "-require",
		published.String())
	run(t, dir, environ, "go", "build", "-o", "example", ".")
	if deps := run(t, dir, nil, "go", "version", "-m", "example"); !strings.Contains(deps,
		"\tdep\t"+published.Path+"\t"+published.Version+"\th1:") {
		t.Errorf("the program is not made of %v:\n%s", published, deps)
	}
	if filepath.Base(example) != "embed-cluster" {
		run(t, dir, []string{"HOME=" + dir}, "./example")
	}
}

// install installs the command as an outside user does. It knows its version.
func install(t *testing.T, environ []string) {
	bin := t.TempDir()
	run(t, bin, append(environ, "GOBIN="+bin), "go", "install",
		published.Path+"/cmd/rdzv@"+published.Version)
	if out := run(t, bin, nil, "./rdzv", "version"); !strings.HasPrefix(out, "rdzv 1.0.0 go1.") {
		t.Errorf("rdzv version prints %q", out)
	}
}

// run runs a command in a directory and returns its stdout.
func run(t *testing.T, dir string, more []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), more...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q in %s: %v\n%s%s", name, args, dir, err, out, &stderr)
	}
	return string(out)
}
