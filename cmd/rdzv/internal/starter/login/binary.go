package login

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"
)

// binary is the executable that the hosts run.
type binary struct {
	build  func() (string, error) // its build ID
	size   int64
	sum    func() (string, error) // its SHA-256
	packed func() ([]byte, error) // compressed
}

// readBinary begins to read the executable: its hash is needed when the first host has answered.
func readBinary(path, build string) (*binary, error) {
	if strings.ContainsFunc(build, func(r rune) bool {
		return !strings.ContainsRune("-_.", r) && (r > unicode.MaxASCII || !isAlphanumeric(r))
	}) {
		return nil, fmt.Errorf("cannot use build ID %q: it is no file's name", build)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read rdzv's executable: %w", err)
	}
	b := &binary{size: info.Size()}
	b.sum = sync.OnceValues(func() (string, error) { return sum(path) })
	b.packed = sync.OnceValues(func() ([]byte, error) { return pack(path) })
	b.build = func() (string, error) { return build, nil }
	if build == "" {
		b.build = b.sum
	}
	go b.sum()
	return b, nil
}

func isAlphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func sum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// pack compresses a file, as fast as gzip can.
func pack(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(w, f); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
