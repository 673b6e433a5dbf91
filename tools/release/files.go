package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// file is a file of a package.
type file struct {
	path string // without a leading slash
	mode fs.FileMode
	data []byte
}

// installed are the files of rdzv below a prefix such as /usr, as "make install" places them.
func (r release) installed(p program) []file {
	return append(below("share/doc/rdzv", r.pages), []file{
		{"bin/rdzv", 0o755, p.data},
		{"share/man/man1/rdzv.1", 0o644, r.texts.man},
		{"share/bash-completion/completions/rdzv", 0o644, r.texts.bash},
		{"share/zsh/site-functions/_rdzv", 0o644, r.texts.zsh},
		{"share/fish/vendor_completions.d/rdzv.fish", 0o644, r.texts.fish},
		{"share/doc/rdzv/THIRD_PARTY_LICENSES", 0o644, r.others},
	}...)
}

// below returns the files in a directory.
func below(dir string, files []file) []file {
	moved := slices.Clone(files)
	for i := range moved {
		moved[i].path = path.Join(dir, moved[i].path)
	}
	return moved
}

// directories are the directories of files, sorted, each before what it contains.
func directories(files []file) []string {
	var dirs []string
	for _, f := range files {
		for d := path.Dir(strings.TrimSuffix(f.path, "/")); d != "."; d = path.Dir(d) {
			dirs = append(dirs, d)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// archived is an archive of the files, sorted, which belong to root and were changed at t.
func archived(files []file, t time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	entries := slices.Clone(files)
	for _, d := range directories(files) {
		entries = append(entries, file{path: d + "/", mode: 0o755})
	}
	slices.SortFunc(entries, func(a, b file) int { return strings.Compare(a.path, b.path) })
	for _, f := range entries {
		h := &tar.Header{Name: f.path, Mode: int64(f.mode.Perm()), ModTime: t, Format: tar.FormatUSTAR,
			Typeflag: tar.TypeReg, Size: int64(len(f.data))}
		if strings.HasSuffix(f.path, "/") {
			h.Typeflag = tar.TypeDir
		}
		if f.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("cannot archive %s: %w", f.path, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("cannot archive %s: %w", f.path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot end an archive: %w", err)
	}
	return b.Bytes(), nil
}

// gzipped has neither a name nor a time, which gzip would record.
func gzipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("cannot compress: %w", err)
	}
	if _, err := io.Copy(w, bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("cannot compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot compress: %w", err)
	}
	return b.Bytes(), nil
}
