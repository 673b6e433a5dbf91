// Package imports tests which package may import which. Each rule prevents a dependency that would
// be easy to add and hard to remove.
package imports

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

type goPackage struct {
	ImportPath                string
	Imports, Deps             []string // Deps includes those of imported packages
	TestImports, XTestImports []string
}

func list(t *testing.T, packages string) []goPackage {
	t.Helper()
	fields := "-json=ImportPath,Imports,Deps,TestImports,XTestImports"
	c := exec.CommandContext(t.Context(), "go", append([]string{"list", fields}, strings.Fields(packages)...)...)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", packages, err, &stderr)
	}
	var all []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		p.rename()
		all = append(all, p)
	}
}

// modulePath is the path of this module. The rules call it rdzv.
var modulePath = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m").Output()
	return strings.TrimSpace(string(out)), err
})

// rename gives the packages of this module the names that the rules use.
func (p *goPackage) rename() {
	own, err := modulePath()
	if err != nil {
		panic(err) // go list has just listed its packages
	}
	rename := func(path string) string {
		if below, ok := strings.CutPrefix(path, own); ok && (below == "" || below[0] == '/') {
			return "rdzv" + below
		}
		return path
	}
	p.ImportPath = rename(p.ImportPath)
	for _, paths := range [][]string{p.Imports, p.Deps, p.TestImports, p.XTestImports} {
		for i := range paths {
			paths[i] = rename(paths[i])
		}
	}
}

func TestImports(t *testing.T) {
	for _, rule := range rules {
		t.Run(strings.Trim(rule.packages, "./"), func(t *testing.T) {
			packages := list(t, rule.packages)
			if len(packages) == 0 {
				t.Fatalf("no package matches %s", rule.packages)
			}
			for _, p := range packages {
				check(t, p, rule.forbidden, rule.allowed)
			}
		})
	}
}

func check(t *testing.T, p goPackage, forbidden map[string]string, allowed []string) {
	t.Helper()
	for pattern, reason := range forbidden {
		dependencies := p.Deps
		if standard(pattern) {
			dependencies = p.Imports
		}
		if strings.HasPrefix(p.ImportPath, "rdzv/integration") {
			dependencies = slices.Concat(p.Deps, p.TestImports, p.XTestImports)
		}
		for _, path := range dependencies {
			if matches(pattern, path) {
				t.Errorf("%s depends on %s, which is forbidden: %s", p.ImportPath, path, reason)
			}
		}
	}
	if allowed == nil {
		return
	}
	for _, path := range p.Imports {
		below := strings.HasPrefix(path, p.ImportPath+"/")
		listed := slices.ContainsFunc(allowed, func(x string) bool { return matches(x, path) })
		if !standard(path) && !below && !sameInternal(p.ImportPath, path) && !listed {
			t.Errorf("%s imports %s, which is not the standard library and not one of %q",
				p.ImportPath, path, allowed)
		}
	}
}

// matches reports whether a path matches a pattern: a path, or "x/..." for x and all below it.
func matches(pattern, path string) bool {
	root, below := strings.CutSuffix(pattern, "/...")
	return path == root || below && strings.HasPrefix(path, root+"/")
}

// standard reports whether a package is in the standard library: the first element of its path has
// no dot and is not this module.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return first != "rdzv" && !strings.Contains(first, ".")
}

// sameInternal reports whether path is in an internal folder of the importer's own packages. The
// module's internal folder belongs to all packages: what they use of it has to be allowed.
func sameInternal(importer, path string) bool {
	root, _, ok := strings.Cut(path, "/internal/")
	return ok && root != "rdzv" && strings.HasPrefix(importer, root+"/")
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"os", "os", true}, {"os", "os/exec", false},
		{"net/...", "net", true}, {"net/...", "net/netip", true},
		{"rdzv/...", "rdzv/wrap", true}, {"rdzv/rdzv/store/...", "rdzv/rdzv/storefront", false},
	} {
		if got := matches(c.pattern, c.path); got != c.want {
			t.Errorf("matches(%q, %q) = %t, want %t", c.pattern, c.path, got, c.want)
		}
	}
}
