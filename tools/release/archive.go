package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// writeArchive writes rdzv_VERSION_linux_ARCH.tar.gz, which contains one directory of that name.
// Its bin and share can be unpacked into a prefix such as /usr/local.
func writeArchive(r release, p program, dist string) error {
	name := fmt.Sprintf("rdzv_%s_linux_%s", r.version.semantic, p.arch)
	archive, err := archived(below(name, r.installed(p)), r.time)
	if err != nil {
		return err
	}
	if archive, err = gzipped(archive); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dist, name+".tar.gz"), archive, 0o644); err != nil {
		return fmt.Errorf("cannot write an archive: %w", err)
	}
	return nil
}
