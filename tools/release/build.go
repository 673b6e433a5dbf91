package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// architectures are those of the packages, as Go names them.
var architectures = []string{"amd64", "arm64"}

// toolchain runs the commands that make a release.
type toolchain struct {
	ctx     context.Context
	dir     string // the sources
	work    string // for temporary files
	environ []string
	stderr  io.Writer
}

// texts are files of packages that the program itself prints: its manual page and completions.
type texts struct{ man, bash, zsh, fish []byte }

// build builds the programs, and collects what their packages contain.
func (g toolchain) build(r *release) error {
	for _, arch := range architectures {
		p, err := g.program(r.version, r.commit, arch)
		if err != nil {
			return err
		}
		r.programs = append(r.programs, p)
	}
	return g.describe(r)
}

// describe collects what packages contain besides the programs.
func (g toolchain) describe(r *release) (err error) {
	if r.licence, err = os.ReadFile(filepath.Join(g.dir, "LICENSE")); err != nil {
		return fmt.Errorf("cannot read what packages contain: %w", err)
	}
	if r.pages, err = pages(g.dir); err != nil {
		return err
	}
	if r.others, err = g.licences(r.programs); err != nil {
		return err
	}
	r.texts, err = g.print(r.programs)
	return err
}

// program builds for one architecture. Neither the directory nor its state in git gets into it.
func (g toolchain) program(v version, commit, arch string) (program, error) {
	path := filepath.Join(g.work, arch, "rdzv")
	_, err := g.output(goEnviron(arch), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		"-s -w -X main.linkedVersion="+v.semantic+" -X main.linkedCommit="+commit, "-o", path,
		"./cmd/rdzv")
	if err != nil {
		return program{}, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return program{}, fmt.Errorf("cannot read the program for %s: %w", arch, err)
	}
	return program{arch, path, data}, nil
}

// goEnviron makes builds equal on all machines: a static program for every processor of the
// architecture.
func goEnviron(arch string) []string {
	return []string{
		"GOOS=linux", "GOARCH=" + arch, "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0", "GOWORK=off",
		"GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GOFIPS140=off",
	}
}

// print asks the program for this machine for its manual page and completions.
func (g toolchain) print(programs []program) (texts, error) {
	i := slices.IndexFunc(programs, func(p program) bool { return p.arch == runtime.GOARCH })
	if i < 0 {
		return texts{}, fmt.Errorf("cannot print the manual page: no program runs on %s: make the "+
			"release on one of %q", runtime.GOARCH, architectures)
	}
	var t texts
	for _, p := range []struct {
		to   *[]byte
		args []string
	}{
		{&t.man, []string{"man"}}, {&t.bash, []string{"completion", "bash"}},
		{&t.zsh, []string{"completion", "zsh"}}, {&t.fish, []string{"completion", "fish"}},
	} {
		out, err := g.output(nil, programs[i].path, p.args...)
		if err != nil {
			return texts{}, err
		}
		*p.to = out
	}
	return t, nil
}

// output runs a command in the sources, with more variables, and returns what it prints.
func (g toolchain) output(more []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(g.ctx, name, args...)
	cmd.Dir, cmd.Env = g.dir, slices.Concat(g.environ, more)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, io.MultiWriter(&stderr, g.stderr)
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("cannot run %s %s: %w\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return stdout.Bytes(), nil
}
