package role

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// devices is the file system from "/". It notes which device files this task may use: a launcher
// can restrict each task to some of them.
type devices struct{ accessible []string }

func (*devices) Open(name string) (fs.File, error) { return os.Open("/" + name) }

// Accessible implements envmap.Accessible.
func (d *devices) Accessible(name string) bool {
	may := unix.Access("/"+name, unix.R_OK|unix.W_OK) == nil
	if may {
		d.accessible = append(d.accessible, name)
	}
	return may
}
