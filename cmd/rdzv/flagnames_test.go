package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"rdzv/cmd/rdzv/internal/flagname"
	"rdzv/cmd/rdzv/internal/options"
	"rdzv/rdzv/agent"
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

// libraryFlags are the flags that set something of the library.
func libraryFlags() map[string]bool {
	flags := map[string]bool{}
	add := func(f *pflag.Flag) { flags["--"+f.Name] = true }
	options.New().ExecFlags().VisitAll(add)
	store := newStoreFlags()
	store.options.Flags("store", store.groups()).VisitAll(add)
	return flags
}

// A program that embeds an agent has no flags: texts of the library name the fields of Config.
func TestLibraryNamesNoFlags(t *testing.T) {
	flags, word, n := libraryFlags(), regexp.MustCompile(`--[a-z][a-z0-9-]*`), 0
	libraryTexts(t, func(at token.Position, text string) {
		n++
		for _, flag := range word.FindAllString(text, -1) {
			if flags[flag] {
				t.Errorf("%v: %q names the flag %s", at, text, flag)
			}
		}
	})
	if n < 1000 {
		t.Errorf("%d texts, want those of the whole library", n)
	}
}

// checkFlagOf fails the test unless Config has the field, and a flag or a variable sets it.
func checkFlagOf(t *testing.T, path string) {
	t.Helper()
	in := reflect.TypeFor[agent.Config]()
	for name := range strings.SplitSeq(path, ".") {
		if in.Kind() != reflect.Struct {
			t.Errorf("Config has no field %s", path)
			return
		}
		field, is := in.FieldByName(name)
		if !is {
			t.Errorf("Config has no field %s", path)
			return
		}
		in = field.Type
	}
	flag, _, _ := strings.Cut(flagname.Of(path), " ")
	if !libraryFlags()[flag] && !strings.HasPrefix(flag, "RDZV_") {
		t.Errorf("the flag of %s would be %s, which does not exist", path, flag)
	}
}

// Every field that a text of the library names exists and has a flag, and every phrase that the
// command replaces is in such a text.
func TestFieldsInTexts(t *testing.T) {
	named, field := map[string]bool{}, regexp.MustCompile(`\bConfig\.([A-Z]\w*(?:\.[A-Z]\w*)?)`)
	var all strings.Builder
	libraryTexts(t, func(_ token.Position, text string) {
		all.WriteString(text + "\n")
		for _, m := range field.FindAllStringSubmatch(text, -1) {
			named[m[1]] = true
		}
	})
	if len(named) < 20 {
		t.Errorf("the library names the fields %v, want more", named)
	}
	delete(named, "Program") // the command never leaves it out
	delete(named, "Lead")    // of rdzv.Config, as above
	for path := range named {
		checkFlagOf(t, path)
	}
	for phrase := range flagname.Phrases() {
		if !strings.Contains(all.String(), phrase) {
			t.Errorf("no text of the library has %q", phrase)
		}
	}
}
