package login

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"
)

// binary is the executable that the hosts run.
type binary struct {
	size   int64
	sum    func() (string, error) // its SHA-256
	packed func() ([]byte, error) // compressed
}

// readBinary begins to read the executable: its hash is needed when the first host has answered.
func readBinary(path string) (*binary, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read rdzv's executable: %w", err)
	}
	b := &binary{size: info.Size()}
	b.sum = sync.OnceValues(func() (string, error) { return sum(path) })
	b.packed = sync.OnceValues(func() ([]byte, error) { return pack(path) })
	go b.sum()
	return b, nil
}

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
