// Package imports holds the rules of which package may import what. The packages
// of this repository are leaves that one command composes; a shortcut between two
// of them is found here before anybody depends on it.
package imports

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rules say what the packages of a folder must do without, and what they may import.
var rules = []struct {
	packages string
	// without gives the reason by import path; "x/..." is x and what is below it.
	// Packages of the standard library must not be imported, others not even be
	// depended on through others. Tests are free, but in a folder of tests alone.
	without map[string]string
	// only is what may be imported beside the standard library and what is below
	// the package itself; nil is anything.
	only []string
}{
	{
		packages: "./envmap/...",
		without: map[string]string{
			"os":       "the environment is an argument, so that every launcher is a row of a table",
			"net/...":  "addresses are arguments: envmap is pure",
			"time":     "clocks are arguments: envmap is pure",
			"rdzv/...": "envmap translates environments and knows nothing of jobs or processes",
		},
		only: []string{},
	},
	{
		packages: "./rdzv",
		without: map[string]string{
			"go.etcd.io/etcd/server/v3/...": "who embeds package rdzv talks to a store; only package store runs one, and it costs 10 MB and 10 ms",
			"rdzv/envmap/...":               "a job does not depend on who started it",
			"rdzv/wrap/...":                 "a job does not depend on what its workers are",
			"rdzv/rdzv/store/...":           "who embeds package rdzv talks to a store; only package store runs one",
			"rdzv/rdzv/meet/...":            "package rdzv is given its connections",
		},
		only: []string{"go.etcd.io/etcd/client/v3", "google.golang.org/grpc/...", "go.uber.org/zap", "rdzv/rdzv/presence"},
	},
	{
		packages: "./rdzv/agent",
		without: map[string]string{
			"rdzv/cmd/...": "who embeds an agent has its own command line",
		},
		only: []string{
			"rdzv/rdzv", "rdzv/rdzv/masterport", "rdzv/rdzv/meet", "rdzv/rdzv/presence", "rdzv/rdzv/secret", "rdzv/rdzv/store",
			"rdzv/envmap", "rdzv/wrap", "rdzv/internal/procfs",
			"go.etcd.io/etcd/client/v3", "google.golang.org/grpc/...", "github.com/hashicorp/go-multierror", "golang.org/x/sys/unix",
		},
	},
	{
		packages: "./rdzv/agent/internal/...",
		without: map[string]string{
			"rdzv/rdzv/...":   "facts about the program, the host and a dead worker do not depend on the job",
			"rdzv/envmap/...": "facts about the program, the host and a dead worker do not depend on the launcher",
			"rdzv/wrap/...":   "facts about the program, the host and a dead worker do not depend on who runs it",
		},
		only: []string{"golang.org/x/sys/unix", "rdzv/internal/procfs"},
	},
	{
		packages: "./cmd/rdzv/internal/console",
		only:     []string{"rdzv/rdzv", "rdzv/rdzv/agent", "rdzv/envmap", "golang.org/x/sys/unix"},
	},
	{
		packages: "./rdzv/presence",
		without: map[string]string{
			"go.etcd.io/...": "presence knows etcd's server as little as its client",
			"rdzv/...":       "presence is below everything else",
		},
	},
	{
		packages: "./rdzv/store",
		without: map[string]string{
			"rdzv/envmap/...":    "a store serves whoever is let in",
			"rdzv/wrap/...":      "a store starts no processes",
			"rdzv/rdzv/meet/...": "a store is given its listeners",
		},
	},
	{
		packages: "./rdzv/meet/...",
		without: map[string]string{
			"rdzv/envmap/...":       "package meet is told which launcher it is under",
			"rdzv/wrap/...":         "package meet starts no workers",
			"rdzv/rdzv/store/...":   "package meet hosts nothing itself: it calls back",
			"go.etcd.io/...":        "package meet hands out connections, whatever is spoken on them",
			"google.golang.org/...": "package meet hands out connections, whatever is spoken on them",
		},
		only: []string{"golang.org/x/sys/unix", "rdzv/rdzv/secret", "rdzv/internal/filelock", "rdzv/internal/procfs/..."},
	},
	{
		packages: "./rdzv/meet/internal/gate",
		without: map[string]string{
			"rdzv/rdzv/meet/internal/beacon": "who is admitted does not depend on how the store was found",
			"rdzv/rdzv/meet/internal/hosts":  "which addresses to listen on or to dial is an argument",
			"rdzv/rdzv/meet/internal/pmi":    "who is admitted does not depend on how the store was found",
		},
		only: []string{"rdzv/rdzv/secret"},
	},
	{
		packages: "./rdzv/meet/internal/beacon",
		without: map[string]string{
			"rdzv/rdzv/meet/internal/gate": "a beacon is sent and read, whatever follows from it",
		},
		only: []string{"golang.org/x/sys/unix", "rdzv/rdzv/secret"},
	},
	{
		packages: "./rdzv/meet/internal/hosts",
		without: map[string]string{
			"rdzv/...": "reading names of hosts needs nothing of a job",
			"time":     "hosts is pure",
		},
		only: []string{},
	},
	{
		packages: "./rdzv/meet/internal/pmi",
		without: map[string]string{
			"rdzv/rdzv/secret": "PMI-1 carries texts, whatever they say",
			"rdzv/rdzv/meet":   "a client of PMI-1 needs nothing of a search",
		},
		only: []string{"golang.org/x/sys/unix"},
	},
	{
		packages: "./rdzv/secret",
		without: map[string]string{
			"net/...":  "a secret is made and read, and never sent, by package secret",
			"rdzv/...": "secret is below everything else",
		},
		only: []string{},
	},
	{
		packages: "./internal/filelock",
		without:  map[string]string{"rdzv/...": "a lock serves whoever takes it"},
		only:     []string{},
	},
	{
		packages: "./internal/procfs/...",
		without: map[string]string{
			"net":      "/proc is files; its addresses are those of net/netip",
			"rdzv/...": "reading /proc needs nothing of a job",
		},
		only: []string{},
	},
	{
		packages: "./rdzv/masterport",
		without: map[string]string{
			"rdzv/...": "a port is held for whoever asks",
		},
		only: []string{"golang.org/x/sys/unix"},
	},
	{
		packages: "./wrap/...",
		without: map[string]string{
			"rdzv/envmap/...": "a worker's environment is an argument",
			"rdzv/rdzv/...":   "package wrap runs processes and knows nothing of jobs",
		},
		only: []string{"golang.org/x/sys/unix", "rdzv/internal/procfs"},
	},
	{
		packages: "./integration/...",
		without: map[string]string{
			"rdzv/cmd/...":    "integration tests use the binary as a user does",
			"rdzv/envmap/...": "integration tests use the binary as a user does",
			"rdzv/rdzv/...":   "integration tests use the binary as a user does",
			"rdzv/wrap/...":   "integration tests use the binary as a user does",
		},
	},
}

// listed is one package as go list prints it.
type listed struct {
	ImportPath                string
	Imports, Deps             []string // its own; through others too
	TestImports, XTestImports []string
	GoFiles                   []string
}

func list(t *testing.T, packages string) []listed {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps,TestImports,XTestImports,GoFiles", "-tags=integration", packages)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", packages, err, &stderr)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
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
				check(t, p, rule.without, rule.only)
			}
		})
	}
}

func check(t *testing.T, p listed, without map[string]string, only []string) {
	t.Helper()
	for pattern, why := range without {
		among := p.Deps
		if standard(pattern) {
			among = p.Imports
		}
		if strings.HasPrefix(p.ImportPath, "rdzv/integration") {
			among = slices.Concat(p.Deps, p.TestImports, p.XTestImports)
		}
		for _, path := range among {
			if matches(pattern, path) {
				t.Errorf("%s depends on %s: %s", p.ImportPath, path, why)
			}
		}
	}
	for _, path := range p.Imports {
		may := only == nil || standard(path) || strings.HasPrefix(path, p.ImportPath+"/") || internal(p.ImportPath, path) ||
			slices.ContainsFunc(only, func(pattern string) bool { return matches(pattern, path) })
		if !may {
			t.Errorf("%s imports %s; beside the standard library it may import %q alone", p.ImportPath, path, only)
		}
	}
}

// matches tells whether a path is the pattern, or below "x/...".
func matches(pattern, path string) bool {
	root, below := strings.CutSuffix(pattern, "/...")
	return path == root || below && strings.HasPrefix(path, root+"/")
}

// standard tells whether a path is of the standard library: its first element
// has no dot and is not this module.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return first != "rdzv" && !strings.Contains(first, ".")
}

// internal tells whether both are of the same family below an internal folder. The
// module's own internal folder is for nobody in particular.
func internal(importer, path string) bool {
	root, _, ok := strings.Cut(path, "/internal/")
	return ok && root != "rdzv" && strings.HasPrefix(importer, root+"/")
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"os", "os", true}, {"os", "os/exec", false}, {"net/...", "net", true}, {"net/...", "net/netip", true},
		{"rdzv/rdzv/store/...", "rdzv/rdzv/storefront", false}, {"rdzv/...", "rdzv/wrap", true},
	} {
		if got := matches(c.pattern, c.path); got != c.want {
			t.Errorf("matches(%q, %q) = %v", c.pattern, c.path, got)
		}
	}
}
