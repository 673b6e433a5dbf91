package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

//go:embed wheel/__init__.py
var wheelInit []byte

//go:embed wheel/__main__.py
var wheelMain []byte

// machines are the architectures as Python names them.
var machines = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// platforms are the tags of a program that needs no C library, neither glibc (manylinux, PEP 600
// and its older name of PEP 599) nor musl (PEP 656).
func platforms(arch string) []string {
	tags := []string{"manylinux_2_17_", "manylinux2014_", "musllinux_1_1_"}
	for i := range tags {
		tags[i] += machines[arch]
	}
	return tags
}

// writeWheel writes a wheel
// (https://packaging.python.org/specifications/binary-distribution-format). pip copies the program
// itself into the bin directory of the environment.
func writeWheel(r release, p program, dist string) error {
	name := "rdzv-" + r.version.python
	info := name + ".dist-info/"
	files := []file{
		{"rdzv/__init__.py", 0o644, wheelInit},
		{"rdzv/__main__.py", 0o644, wheelMain},
		{name + ".data/scripts/rdzv", 0o755, p.data},
		{info + "licenses/LICENSE", 0o644, r.licence},
		{info + "licenses/THIRD_PARTY_LICENSES", 0o644, r.others},
		{info + "METADATA", 0o644, []byte(metadata(r.version.python))},
		{info + "WHEEL", 0o644, []byte(wheelTags(p.arch))},
	}
	files = append(files, file{info + "RECORD", 0o644, []byte(record(files, info+"RECORD"))})
	archive, err := zipped(files, r.time)
	if err != nil {
		return err
	}
	name += "-py3-none-" + strings.Join(platforms(p.arch), ".") + ".whl"
	if err := os.WriteFile(filepath.Join(dist, name), archive, 0o644); err != nil {
		return fmt.Errorf("cannot write a wheel: %w", err)
	}
	return nil
}

func metadata(version string) string {
	return fmt.Sprintf(`Metadata-Version: 2.4
Name: rdzv
Version: %s
Summary: %s
License-Expression: Apache-2.0
License-File: LICENSE
License-File: THIRD_PARTY_LICENSES
Requires-Python: >=3.6
Provides-Extra: stacks
Requires-Dist: py-spy; extra == "stacks"
Description-Content-Type: text/markdown

    mpirun -np 4 rdzv exec -- python3 main.py
    srun python3 -m rdzv exec -- python3 main.py

The second form needs no PATH. The wheel contains one static program for Linux.
`, version, summary)
}

func wheelTags(arch string) string {
	tags := "Wheel-Version: 1.0\nGenerator: rdzv\nRoot-Is-Purelib: false\n"
	for _, p := range platforms(arch) {
		tags += "Tag: py3-none-" + p + "\n"
	}
	return tags
}

// record lists all files with checksum and size, and itself without.
func record(files []file, self string) string {
	var b strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", f.path, base64.RawURLEncoding.EncodeToString(sum[:]),
			len(f.data))
	}
	return b.String() + self + ",,\n"
}

// zipped is a zip archive of the files in their order, which were changed at t.
func zipped(files []file, t time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: t}
		h.SetMode(f.mode)
		to, err := w.CreateHeader(h)
		if err != nil {
			return nil, fmt.Errorf("cannot archive %s: %w", f.path, err)
		}
		if _, err := to.Write(f.data); err != nil {
			return nil, fmt.Errorf("cannot archive %s: %w", f.path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot end an archive: %w", err)
	}
	return b.Bytes(), nil
}
