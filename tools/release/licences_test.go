package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// modulesIn makes modules of files, whose first element is the name of their module.
func modulesIn(t *testing.T, files ...string) map[string]module {
	t.Helper()
	dir := t.TempDir()
	modules := map[string]module{}
	for _, f := range files {
		path := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("text of "+f), 0o600); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(f, "/")
		m := modules[name]
		modules[name] = module{name, filepath.Join(dir, name), append(m.dirs, filepath.Dir(path))}
	}
	return modules
}

func TestCollectLicences(t *testing.T) {
	modules := modulesIn(t, "b/LICENSE", "b/NOTICE.txt", "b/internal/copied/deep/code.go",
		"b/internal/LICENCE-MIT", "b/licenses.go", "a/COPYING", "a/code.go")
	text, err := collect(modules)
	if err != nil {
		t.Fatal(err)
	}
	var at []int
	for _, want := range []string{
		"    a\n    b\n", "text of a/COPYING", "text of b/LICENSE", "text of b/NOTICE.txt",
		"text of b/internal/LICENCE-MIT",
	} {
		at = append(at, strings.Index(string(text), want))
	}
	for i := range at[1:] {
		if at[i] < 0 || at[i] >= at[i+1] {
			t.Fatalf("places %v in\n%s", at, text)
		}
	}
	if strings.Contains(string(text), ".go") {
		t.Errorf("code in\n%s", text)
	}
}

// A licence of a package that is not in the program is none of the module's.
func TestModuleWithoutLicence(t *testing.T) {
	modules := modulesIn(t, "a/LICENSE", "b/code.go")
	if err := os.MkdirAll(filepath.Join(modules["b"].root, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(modules["b"].root, "other", "LICENSE")
	if err := os.WriteFile(other, []byte("MIT"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := collect(modules)
	if err == nil || !strings.Contains(err.Error(), "cannot find a licence of b in ") {
		t.Errorf("error %v", err)
	}
}

// What the go command lists and what is in the program must agree.
func TestModulesOfTheProgram(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	_, err = linked(program{"amd64", exe, data}, map[string]module{})
	if err == nil || !strings.Contains(err.Error(), "go-containerregistry") &&
		!strings.Contains(err.Error(), "cannot find the licence of") {
		t.Errorf("error %v", err)
	}
	if _, err := linked(program{data: []byte("#!/bin/sh\n")}, nil); err == nil {
		t.Error("no error for a script")
	}
}
