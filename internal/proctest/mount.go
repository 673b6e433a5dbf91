package proctest

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// MayMount reports whether this process may mount file systems: as root, or as root of a user
// namespace in which Inside runs the test.
func MayMount(t *testing.T) bool {
	t.Helper()
	return os.Geteuid() == 0 || Inside(t, "--user", "--map-root-user", "--mount")
}

// MountFUSE mounts a FUSE file system whose root has this mode. device is the server's end, from
// which it reads requests. The caller, who may mount, unmounts and closes it. Where the kernel has
// no FUSE, or forbids mounts, the test is skipped.
func MountFUSE(t *testing.T, path string, mode uint32) (device int) {
	t.Helper()
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) { // udev gives all users the right
		t.Skip("only root can open /dev/fuse on this machine")
	} else if err != nil {
		t.Skipf("a file system that does not respond needs FUSE: %v", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=%o,user_id=0,group_id=0", device, mode)
	if err := unix.Mount("test", path, "fuse", 0, options); err == nil {
		return device
	} else if unix.Close(device); !errors.Is(err, unix.EPERM) {
		t.Fatalf("cannot mount FUSE on %q: %v", path, err)
	}
	t.Skip("mounting a file system is not permitted, as in a container")
	return -1
}
