// Package repo tests the repository as a whole: its pages, its examples, what they promise, and
// which package imports which.
package repo

import (
	"log"
	"os"
	"testing"
)

// TestMain runs the tests in the root of the repository: all paths are relative to it.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		log.Fatal(err)
	}
	m.Run()
}
