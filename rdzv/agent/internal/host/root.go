package host

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Root is the file system from "/". It knows which device files this process may open
// (envmap.Accessible) without opening them, which might start a device.
type Root struct{ files }

type files interface {
	fs.ReadFileFS
	fs.ReadDirFS
	fs.StatFS
	fs.ReadLinkFS
}

// NewRoot returns the file system from "/".
func NewRoot() Root { return Root{os.DirFS("/").(files)} }

// Accessible tells whether this process may read and write a file.
func (Root) Accessible(name string) bool {
	return unix.Access("/"+name, unix.R_OK|unix.W_OK) == nil
}
