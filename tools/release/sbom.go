package main

import (
	"fmt"
	"path/filepath"
)

// writeSBOM writes the modules of a program as a CycloneDX document, which cyclonedx-gomod makes
// of what Go has recorded in the program. It is built without paths, because the document has its
// hash.
func (g toolchain) writeSBOM(r release, p program, dist string) error {
	tool := filepath.Join(g.work, "cyclonedx-gomod")
	if _, err := g.output([]string{"CGO_ENABLED=0", "GOFLAGS=-mod=readonly"}, "go", "build", "-C",
		"tools", "-trimpath", "-buildvcs=false", "-o", tool,
		"github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod"); err != nil {
		return err
	}
	name := fmt.Sprintf("rdzv_%s_linux_%s.cdx.json", r.version.semantic, p.arch)
	_, err := g.output(nil, tool, "bin", "-json", "-noserial", "-notimestamp", "-std",
		"-version", r.version.semantic, "-output", filepath.Join(dist, name), p.path)
	return err
}
