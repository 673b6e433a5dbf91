package integration

import (
	"os"
	"os/exec"
	"path/filepath"
)

// rootFS makes the root of a container in the place: rdzv, a shell and its commands, and the
// directories and files on which container runtimes mount the host's.
func (p *place) rootFS() string {
	p.t.Helper()
	root := p.dir("rootfs")
	for _, dir := range []string{"bin", "dev", "etc", "home", "lib", "lib64", "mnt", "opt", "proc",
		"root", "run", "srv", "sys", "tmp", "usr", "var", "var/tmp", "var/run"} {
		p.must(os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, file := range []string{"passwd", "group", "hosts", "resolv.conf"} {
		p.must(os.WriteFile(filepath.Join(root, "etc", file), nil, 0o644))
	}
	bin := filepath.Join(root, "bin")
	for _, command := range []string{"sh", "cat", "echo", "sleep", "hostname", "ls", "env",
		"setsid"} {
		if err := os.Symlink("busybox", filepath.Join(bin, command)); !os.IsExist(err) {
			p.must(err)
		}
	}
	copies := exec.Command("sh", "-c", `cp /bin/busybox "$1/busybox" && cp "$0" "$1/rdzv"`,
		*rdzvBin, bin)
	if out, err := copies.CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
	return root
}

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}
