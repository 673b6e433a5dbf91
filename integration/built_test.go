package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// builtDir has the programs that the tests build; it is removed when they have ended.
var builtDir string

// A builtProgram is built when a test needs it first, because linking it takes seconds.
type builtProgram struct {
	name, pkg string
	flags     []string
	once      sync.Once
	err       error
}

var (
	// otherVersion is rdzv with another version of its protocol.
	otherVersion = builtProgram{name: "rdzv-other", pkg: "rdzv/cmd/rdzv",
		flags: []string{"-tags", "rdzv_other_protocol"}}
	// moduleEtcd is the etcd whose client rdzv has.
	moduleEtcd = builtProgram{name: "etcd", pkg: "rdzv/integration/testbed/etcd"}
)

// path returns the path of the program.
func (b *builtProgram) path(t *testing.T) string {
	t.Helper()
	path := filepath.Join(builtDir, b.name)
	b.once.Do(func() { b.err = build(path, b.pkg, b.flags...) })
	if b.err != nil {
		t.Fatalf("cannot build %s: %v", b.name, b.err)
	}
	return path
}

// build builds a program as make does, with further flags.
func build(path, program string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", path}, flags...)
	cmd := exec.Command("go", append(args, program)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}
