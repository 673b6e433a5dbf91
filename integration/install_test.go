package integration

import (
	"os"
	"strings"
	"testing"
)

// An image that has nothing but the binary can put it into a volume: there is no shell, no cp and no
// other file, and rdzv is process 1.
func TestInstallFromScratch(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	line := strings.Fields("unshare --mount --pid --fork")
	if os.Geteuid() != 0 {
		line = append(line, "--map-root-user")
	}
	const script = `cd "$1" && mkdir -p image/proc image/volume && cp "$2" image/rdzv &&
		mount -t proc proc image/proc && chroot image /rdzv install /volume &&
		(ls -A image; ls -lA image/volume) && image/volume/rdzv version &&
		chroot image /volume/rdzv install /volume && rm -r image/volume image/rdzv`
	install := p.start(append(line, "sh", "-c", script, "sh", p.dir("scratch"), *rdzvBin)...)
	install.checkCode(0)
	for _, want := range []string{"proc", "rdzv", "volume", "-rwxr-xr-x"} {
		install.waitFor(want)
	}
	if lines := install.linesWith("rdzv ", "linux/"); len(lines) != 1 {
		t.Errorf("the copy printed %q", lines)
	}
}
