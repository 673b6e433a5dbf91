package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// writeDeb writes rdzv_VERSION_ARCH.deb with dpkg-deb. Nothing runs when it is installed or
// removed.
func (g toolchain) writeDeb(r release, p program, dist string) error {
	root, err := os.MkdirTemp(g.work, "deb-")
	if err != nil {
		return fmt.Errorf("cannot create a temporary directory: %w", err)
	}
	defer os.RemoveAll(root)
	files, err := debFiles(r, p)
	if err != nil {
		return err
	}
	if err := lay(root, files, r.time); err != nil {
		return err
	}
	// One compressor with one thread on all machines: with more, the bytes are others.
	name := fmt.Sprintf("rdzv_%s_%s.deb", r.version.debian, p.arch)
	_, err = g.output([]string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix())}, "dpkg-deb",
		"--root-owner-group", "-Zxz", "--threads-max=1", "--build", root, filepath.Join(dist, name))
	return err
}

// debFiles are the files below /usr, with compressed manual pages and with copyright instead of
// LICENSE (Debian Policy 12.1 and 12.5), and what dpkg needs to know.
func debFiles(r release, p program) ([]file, error) {
	files := below("usr", r.installed(p))
	size := 0
	var sums strings.Builder
	for i, f := range files {
		switch filepath.Base(f.path) {
		case "rdzv.1":
			data, err := gzipped(f.data)
			if err != nil {
				return nil, err
			}
			files[i].path, files[i].data = f.path+".gz", data
		case "LICENSE":
			files[i].path = filepath.Join(filepath.Dir(f.path), "copyright")
			files[i].data = []byte(copyright)
		case "README.md":
			files[i].data = bytes.ReplaceAll(f.data, []byte("](LICENSE)"), []byte("](copyright)"))
		}
		size += len(files[i].data)
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(files[i].data), files[i].path)
	}
	return append(files,
		file{"DEBIAN/control", 0o644, []byte(control(r.version.debian, p.arch, size))},
		file{"DEBIAN/md5sums", 0o644, []byte(sums.String())},
	), nil
}

// control has no address of a maintainer: the project has none until it has a home.
func control(version, arch string, size int) string {
	return fmt.Sprintf(`Package: rdzv
Version: %s
Architecture: %s
Maintainer: The rdzv authors
Installed-Size: %d
Section: science
Priority: optional
Description: %s
 Under mpirun, mpiexec and srun, or without a launcher, it sets RANK,
 WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT for every process, and
 when one fails it stops all of them on all nodes and reports which one
 failed first, and why.
`, version, arch, (size+1023)/1024, summary)
}

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

const summary = "run a PyTorch program as one distributed job under any launcher"

// lay writes files below a directory with their modes and times, which umask and clock would
// change.
func lay(root string, files []file, t time.Time) error {
	for _, f := range files {
		path := filepath.Join(root, f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("cannot lay out a package: %w", err)
		}
		if err := os.WriteFile(path, f.data, f.mode); err != nil {
			return fmt.Errorf("cannot lay out a package: %w", err)
		}
	}
	modes := map[string]os.FileMode{root: 0o755}
	for _, f := range files {
		modes[filepath.Join(root, f.path)] = f.mode
	}
	for _, d := range directories(files) {
		modes[filepath.Join(root, d)] = 0o755
	}
	for path, mode := range modes {
		if err := os.Chmod(path, mode); err != nil {
			return fmt.Errorf("cannot lay out a package: %w", err)
		}
		if err := os.Chtimes(path, t, t); err != nil {
			return fmt.Errorf("cannot lay out a package: %w", err)
		}
	}
	return nil
}
