package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// RECORD lists every file with the checksum and the size that it has, and itself.
func TestWheelRecord(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(pack(t), "*_x86_64.whl"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	z, err := zip.OpenReader(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	record, err := z.Open("rdzv-1.0.0rc1.dist-info/RECORD")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(record).ReadAll()
	if err != nil || len(rows) != len(z.File) {
		t.Fatalf("%d rows for %d files, %v", len(rows), len(z.File), err)
	}
	for _, row := range rows {
		data, err := fs.ReadFile(z, row[0])
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		hash := "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:])
		itself := strings.HasSuffix(row[0], "/RECORD") && row[1] == "" && row[2] == ""
		if !itself && (row[1] != hash || row[2] != strconv.Itoa(len(data))) {
			t.Errorf("row %q, want %s and %d bytes", row, hash, len(data))
		}
	}
	for _, f := range z.File {
		want := fs.FileMode(0o644)
		if f.Name == "rdzv-1.0.0rc1.data/scripts/rdzv" {
			want = 0o755
		}
		if f.Mode() != want || !f.Modified.Equal(fake().time) {
			t.Errorf("%s: mode %v, changed at %v", f.Name, f.Mode(), f.Modified)
		}
	}
	wantTags(t, z)
}

// The tags of the wheel are those of its name.
func wantTags(t *testing.T, z *zip.ReadCloser) {
	t.Helper()
	f, err := z.Open("rdzv-1.0.0rc1.dist-info/WHEEL")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Root-Is-Purelib: false\n", "Tag: py3-none-manylinux_2_17_x86_64\n",
		"Tag: py3-none-manylinux2014_x86_64\n", "Tag: py3-none-musllinux_1_1_x86_64\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
