package repo

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// importRules are imports that would be easy to add and hard to remove. Packages of this module
// begin with "./"; "x/..." is x and all packages below it.
var importRules = []struct {
	packages string
	direct   string // must not be imported
	anywhere string // must not be imported, not even through other packages
	why      string
}{
	{
		"./envmap/...", "time", "context log net os",
		"envmap is pure: environment, files, addresses and clocks are arguments",
	},
	{
		"./envmap/...", "", "encoding/json fmt reflect regexp sort text/template",
		"get-rank answers before packages are initialised that depend on reflect",
	},
	{"./envmap/...", "", "./rdzv/... ./wrap/...", "an environment depends on no job and no process"},
	{"./rdzv", "", "./envmap/... ./wrap/...", "a job does not depend on what starts and runs its workers"},
	{"./wrap/...", "", "./envmap/... ./rdzv/...", "a process tree does not depend on jobs and launchers"},
	{
		"./wrap/...", "", "net crypto/tls",
		"a runner starts before the packages are initialised that need package net",
	},
	{
		"./rdzv/internal/job ./rdzv/internal/keys ./rdzv/internal/placement ./rdzv/restart",
		"context net os os/exec sync", "",
		"decisions are pure: they depend on keys, failures and a given time, and wait for nothing",
	},
	{
		"./rdzv ./rdzv/etcd ./rdzv/agent/inspect ./integration", "", "go.etcd.io/etcd/server/...",
		"etcd's server costs 10 MB, and 10 ms at each start: who runs no agent needs it not",
	},
	{
		"./integration", "", "./cmd/... ./envmap/... ./rdzv/agent/... ./rdzv/store/... ./wrap/...",
		"integration tests use the binary, as a user does",
	},
}

// etcdServers are the packages that import etcd's server. The last two are for tests.
var etcdServers = []string{"./rdzv/store", "./integration/testbed/etcd", "./internal/etcdtest"}

func TestImports(t *testing.T) {
	packages := list(t)
	for _, r := range importRules {
		matched := 0
		for _, p := range packages {
			if !matchesAny(r.packages, p.ImportPath) {
				continue
			}
			matched++
			for _, path := range p.Imports {
				if matchesAny(r.direct, path) {
					t.Errorf("%s imports %s: %s", p.ImportPath, path, r.why)
				}
			}
			for _, path := range p.Deps {
				if matchesAny(r.anywhere, path) {
					t.Errorf("%s depends on %s: %s", p.ImportPath, path, r.why)
				}
			}
		}
		if matched < len(strings.Fields(r.packages)) {
			t.Errorf("%q names packages that do not exist", r.packages)
		}
	}
	for _, p := range packages {
		for _, path := range p.Imports {
			if matches("go.etcd.io/etcd/server/...", path) && !slices.Contains(etcdServers, p.ImportPath) {
				t.Errorf("%s imports %s: only package store does", p.ImportPath, path)
			}
		}
	}
}

// goPackage is a package as go list prints it.
type goPackage struct {
	ImportPath                string
	Module                    struct{ Path string }
	Imports, Deps             []string // Deps includes those of imported packages
	TestImports, XTestImports []string
}

// list returns the packages of this module. Package integration consists of tests: what these
// import is among its Deps.
func list(t *testing.T) (all []goPackage) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list",
		"-json=ImportPath,Module,Imports,Deps,TestImports,XTestImports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		own := p.Module.Path + "/"
		p.ImportPath = strings.Replace(p.ImportPath, own, "./", 1)
		if p.ImportPath == "./integration" {
			p.Deps = slices.Concat(p.Deps, p.TestImports, p.XTestImports)
		}
		for _, paths := range [][]string{p.Imports, p.Deps} {
			for i := range paths {
				if below, ok := strings.CutPrefix(paths[i], own); ok {
					paths[i] = "./" + below
				}
			}
		}
		all = append(all, p)
	}
}

func matchesAny(patterns, path string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(p string) bool { return matches(p, path) })
}

// matches tells whether a path matches a pattern: a path, or "x/..." for x and all below it.
func matches(pattern, path string) bool {
	root, below := strings.CutSuffix(pattern, "/...")
	return path == root || below && strings.HasPrefix(path, root+"/")
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"os", "os", true}, {"os", "os/exec", false},
		{"net/...", "net", true}, {"net/...", "net/netip", true},
		{"./...", "./wrap", true}, {"./rdzv/store/...", "./rdzv/storefront", false},
	} {
		if got := matches(c.pattern, c.path); got != c.want {
			t.Errorf("matches(%q, %q) = %t, want %t", c.pattern, c.path, got, c.want)
		}
	}
}
