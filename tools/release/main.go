// Command release writes the packages of a release to a directory: archives, wheels, .deb and .rpm
// packages, an image, their bills of materials, the licences of what they contain, and checksums.
// The same sources give the same bytes, wherever and whenever it runs. "make release" runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// A release is what all packages are made of.
type release struct {
	version  version
	commit   string    // 40 hexadecimal digits
	time     time.Time // of the commit, and of every file in every package
	programs []program
	texts    texts
	licence  []byte // of rdzv
	others   []byte // the licences of the modules that the programs contain
	pages    []file // README.md and what it leads to
}

// program is the binary for one architecture.
type program struct {
	arch string // as Go names it: amd64, arm64
	path string
	data []byte
}

// run makes a release from the sources and writes it to a directory, which is emptied before.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	source := flags.String("source", "", "the `directory` of the sources")
	dist := flags.String("dist", "", "the `directory` to write to")
	spelling := flags.String("version", "", "the semantic `version`, without v")
	commit := flags.String("commit", "", "the `commit` of the sources")
	built := flags.String("program", "", "pack only this `program`, which was built for this "+
		"machine, as archive and wheel, for a test")
	epoch := flags.Int64("epoch", 0, "the time of the commit, in `seconds` since 1970")
	if err := flags.Parse(args); err != nil {
		return err
	}
	v, err := parseVersion(*spelling)
	if err != nil {
		return err
	}
	if *commit == "" || *epoch == 0 {
		return errors.New("cannot make a release without a commit and its time: there is no git " +
			"repository, or give make COMMIT and SOURCE_DATE_EPOCH")
	}
	work, err := os.MkdirTemp("", "rdzv-release-")
	if err != nil {
		return fmt.Errorf("cannot create a temporary directory: %w", err)
	}
	defer os.RemoveAll(work)
	g := toolchain{ctx: ctx, dir: *source, work: work, environ: environ, stderr: stderr}
	r := release{version: v, commit: *commit, time: time.Unix(*epoch, 0).UTC()}
	if *built != "" {
		return g.packBuilt(r, *built, *dist)
	}
	if err := g.build(&r); err != nil {
		return err
	}
	return write(g, r, *dist, stdout)
}

// packBuilt packs one program that was built before, which takes seconds.
func (g toolchain) packBuilt(r release, path, dist string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the program: %w", err)
	}
	p := program{runtime.GOARCH, path, data}
	r.programs = []program{p}
	if err := g.describe(&r); err != nil {
		return err
	}
	return errors.Join(writeArchive(r, p, dist), writeWheel(r, p, dist))
}

// write writes all packages, and at last the checksums: without them the release is not complete.
func write(g toolchain, r release, dist string, stdout io.Writer) error {
	if err := os.RemoveAll(dist); err != nil {
		return fmt.Errorf("cannot empty %s: %w", dist, err)
	}
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return fmt.Errorf("cannot create %s: %w", dist, err)
	}
	for _, p := range r.programs {
		for _, pack := range []func(release, program, string) error{
			writeArchive, writeWheel, g.writePackages, g.writeSBOM,
		} {
			if err := pack(r, p, dist); err != nil {
				return err
			}
		}
	}
	if err := writeImage(r, dist); err != nil {
		return err
	}
	licences := filepath.Join(dist, "THIRD_PARTY_LICENSES")
	if err := os.WriteFile(licences, r.others, 0o644); err != nil {
		return fmt.Errorf("cannot write the licences: %w", err)
	}
	return writeSums(dist, stdout)
}
