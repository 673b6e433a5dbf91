package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// writePackages writes rdzv_VERSION_ARCH.deb and rdzv-VERSION-1.ARCH.rpm. Nothing runs when they
// are installed or removed.
func (g toolchain) writePackages(r release, p program, dist string) error {
	for format, packager := range map[string]nfpm.Packager{"deb": deb.Default, "rpm": rpm.DefaultRPM} {
		info, err := g.describePackage(r, p, format)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := packager.Package(info, &b); err != nil {
			return fmt.Errorf("cannot make the .%s for %s: %w", format, p.arch, err)
		}
		name := filepath.Join(dist, packager.ConventionalFileName(info))
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("cannot write a package: %w", err)
		}
	}
	return nil
}

// describePackage has no address of a maintainer, and no URL: the project has none until it has a
// home. The compression is xz, because older releases of dpkg and rpm cannot read zstd.
func (g toolchain) describePackage(r release, p program, format string) (*nfpm.Info, error) {
	contents, err := g.contents(r, p, format)
	if err != nil {
		return nil, err
	}
	info := &nfpm.Info{
		Name: "rdzv", Arch: p.arch, Platform: "linux", Version: r.version.distribution, MTime: r.time,
		Maintainer: "The rdzv authors", Section: "science", License: "Apache-2.0",
		Description: description, DisableGlobbing: true,
	}
	if format == "deb" {
		info.Description = summary + "\n" + description
	}
	info.Contents = contents
	info.Deb = nfpm.Deb{Compression: "xz"}
	info.RPM = nfpm.RPM{Compression: "xz", Summary: summary, BuildHost: "localhost"}
	return info, nil
}

// contents writes the files of a package to a directory, from which nfpm reads them, and adds their
// directories.
func (g toolchain) contents(r release, p program, format string) (files.Contents, error) {
	packed, err := packaged(r, p, format)
	if err != nil {
		return nil, err
	}
	sources, err := os.MkdirTemp(g.work, format+"-")
	if err != nil {
		return nil, fmt.Errorf("cannot create a temporary directory: %w", err)
	}
	var contents files.Contents
	for i, f := range packed {
		source := filepath.Join(sources, strconv.Itoa(i))
		if err := os.WriteFile(source, f.data, 0o600); err != nil {
			return nil, fmt.Errorf("cannot lay out a package: %w", err)
		}
		contents = append(contents, &files.Content{Source: source, Destination: "/" + f.path,
			Type: typeOf(f.path, format), FileInfo: &files.ContentFileInfo{Mode: f.mode}})
	}
	for _, d := range directories(packed) {
		if !slices.Contains(system, d) {
			contents = append(contents, &files.Content{Destination: "/" + d, Type: files.TypeDir})
		}
	}
	return contents, nil
}

// packaged are the files below /usr, with a compressed manual page. A .deb has copyright instead of
// LICENSE (Debian Policy 12.5).
func packaged(r release, p program, format string) ([]file, error) {
	packed := below("usr", r.installed(p))
	for i, f := range packed {
		switch name := path.Base(f.path); {
		case name == "rdzv.1":
			data, err := gzipped(f.data)
			if err != nil {
				return nil, err
			}
			packed[i].path, packed[i].data = f.path+".gz", data
		case format != "deb":
		case name == "LICENSE":
			packed[i].path = path.Join(path.Dir(f.path), "copyright")
			packed[i].data = []byte(copyright)
		case name == "README.md":
			packed[i].data = bytes.ReplaceAll(f.data, []byte("](LICENSE)"), []byte("](copyright)"))
		}
	}
	return packed, nil
}

// system are the directories that belong to a package of the distribution. rpm removes the others
// with rdzv, if no other package has them.
var system = []string{
	"usr", "usr/bin", "usr/share", "usr/share/doc", "usr/share/man", "usr/share/man/man1",
}

// typeOf lets "rpm --nodocs", which images of containers use, leave out the pages but not the
// licences.
func typeOf(name, format string) string {
	switch {
	case format != "rpm":
		return files.TypeFile
	case strings.Contains(path.Base(name), "LICENSE"): // also THIRD_PARTY_LICENSES
		return files.TypeRPMLicense
	case strings.HasPrefix(name, "usr/share/doc/"), strings.HasPrefix(name, "usr/share/man/"):
		return files.TypeRPMDoc
	}
	return files.TypeFile
}

const summary = "run a PyTorch program as one distributed job under any launcher"

const description = `Under mpirun, mpiexec and srun, or without a launcher, it sets RANK,
WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT for every process, and
when one fails it stops all of them on all nodes and reports which one
failed first, and why.`

// copyright is machine-readable: debian.org/doc/packaging-manuals/copyright-format/1.0.
const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: rdzv

Files: *
Copyright: 2026 The rdzv authors
License: Apache-2.0
Comment: The program contains modules of other authors. Their licences are in
 THIRD_PARTY_LICENSES, in this directory.

License: Apache-2.0
 The text of this licence is in /usr/share/common-licenses/Apache-2.0.
`
