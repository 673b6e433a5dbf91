package repo

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// The program in docs/embedding.md prints what is shown there, in the recorded environment of a
// rank of mpirun.
func TestEmbeddingProgram(t *testing.T) {
	page, err := os.ReadFile("docs/embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := goBlock.FindAllSubmatch(page, -1)
	if len(blocks) != 1 {
		t.Fatalf("docs/embedding.md has %d programs; want 1", len(blocks))
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "where")
	if err := os.WriteFile(source, blocks[0][1], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program,
		source).CombinedOutput(); err != nil {
		t.Fatalf("it does not build: %v\n%s", err, out)
	}
	recorded, err := os.ReadFile("envmap/testdata/openmpi4-headrank-rank2.env")
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), program)
	run.Env = strings.Split(strings.TrimSpace(string(recorded)), "\n")
	if out, err := run.CombinedOutput(); err != nil || string(out) != "openmpi4 2 of 4\n" {
		t.Errorf("it prints %q, %v", out, err)
	}
}
