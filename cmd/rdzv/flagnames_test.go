package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/options"
)

// libraryTexts calls a function with each string in the packages of the library, and its place.
func libraryTexts(t *testing.T, each func(at token.Position, text string)) {
	t.Helper()
	files := token.NewFileSet()
	visit := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") ||
			strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if _, is := n.(*ast.Field); is { // its tag is no text
				return true
			}
			if s, is := n.(*ast.BasicLit); is && s.Kind == token.STRING {
				text, err := strconv.Unquote(s.Value)
				if err != nil {
					t.Error(err)
				}
				each(files.Position(s.Pos()), text)
			}
			return true
		})
		return nil
	}
	for _, folder := range []string{"envmap", "internal", "rdzv", "wrap"} {
		if err := filepath.WalkDir(filepath.Join("../..", folder), visit); err != nil {
			t.Fatal(err)
		}
	}
}

// theFlags are the flags of exec and store, with those that help does not show.
func theFlags() map[string]bool {
	flags := map[string]bool{}
	add := func(f *pflag.Flag) { flags["--"+f.Name] = true }
	options.New().ExecFlags().VisitAll(add)
	store := newStoreFlags()
	store.options.Flags("store", store.groups()).VisitAll(add)
	return flags
}

// othersFlags are flags of launchers and other programs that texts of the library name.
var othersFlags = strings.Fields(`
	--check-hash-based-pycs --control-port --format --from-literal --help --json --kill-on-bad-exit
	--map-by --map-root-user --mount --mpi --no-kill --nonblocking --ntasks-per-node --personality --pid
	--prefix --preserve-fds --query-gpu --rdzv-keeper-of --secret --shm-size --showmeminfo --showuse
	--ulimit --user`)

// The flags that a text of the library names are flags of exec, and no text names a field of
// agent.Config but those that have none.
func TestFlagsInTexts(t *testing.T) {
	flags, named, n := theFlags(), map[string]bool{}, 0
	word := regexp.MustCompile(`(?:^|[\s(;:` + "`" + `])(--[a-z][a-z0-9-]*)`)
	field := regexp.MustCompile(`\bConfig\.([A-Z]\w*)`)
	libraryTexts(t, func(at token.Position, text string) {
		n++
		for _, m := range word.FindAllStringSubmatch(text, -1) {
			named[m[1]] = true
			if !flags[m[1]] && !slices.Contains(othersFlags, m[1]) {
				t.Errorf("%v: %q names %s, which is no flag of rdzv", at, text, m[1])
			}
		}
		for _, m := range field.FindAllStringSubmatch(text, -1) {
			if !slices.Contains([]string{"Program", "ReportEvery", "Lead"}, m[1]) {
				t.Errorf("%v: %q names a field", at, text)
			}
		}
	})
	if n < 1000 || len(named) < 20 {
		t.Errorf("%d texts with %d flags, want those of the whole library", n, len(named))
	}
}

// A program that embeds an agent reads flags: the comment of each field of agent.Config has its
// flag, also those of the rules in it.
func TestFieldsNameTheirFlags(t *testing.T) {
	text := ""
	for file, name := range map[string]string{"agent": "Config", "internal/job": "Rules"} {
		source, err := os.ReadFile("../../rdzv/" + file + "/config.go")
		if err != nil {
			t.Fatal(err)
		}
		_, fields, found := strings.Cut(string(source), "type "+name+" struct {")
		fields, _, _ = strings.Cut(fields, "\n}\n")
		if text += fields; !found {
			t.Errorf("%s has no %s", file, name)
		}
	}
	// What these set belongs to the command.
	own := []string{"module", "no-python", "report", "events", "quiet", "verbose"}
	for _, g := range options.New().Groups() {
		for _, r := range g.Rows {
			isNamed := regexp.MustCompile(`--` + r.Name() + `\b`).MatchString(text)
			if isNamed == slices.Contains(own, r.Name()) {
				t.Errorf("--%s is in a comment of agent.Config: %t", r.Name(), isNamed)
			}
		}
	}
}
