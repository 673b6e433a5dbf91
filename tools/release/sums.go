package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// writeSums writes the checksum of every file, as sha256sum -c reads them, and prints them.
func writeSums(dist string, stdout io.Writer) error {
	entries, err := os.ReadDir(dist) // sorted
	if err != nil {
		return fmt.Errorf("cannot list what to sum up: %w", err)
	}
	var sums bytes.Buffer
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dist, e.Name()))
		if err != nil {
			return fmt.Errorf("cannot sum up %s: %w", e.Name(), err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	if err := os.WriteFile(filepath.Join(dist, "SHA256SUMS"), sums.Bytes(), 0o644); err != nil {
		return fmt.Errorf("cannot write the checksums: %w", err)
	}
	_, err = stdout.Write(sums.Bytes())
	return err
}
