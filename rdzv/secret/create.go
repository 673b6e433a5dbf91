package secret

import (
	"errors"
	"io"
	"os"
)

// create writes a new token to the file path. It fails with fs.ErrExist if path exists. The token
// has a temporary name first, and then gets path as a second one, which is atomic on NFS as well.
func create(dir, path string) error {
	f, err := os.CreateTemp(dir, ".token-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.WriteString(f, NewToken()+"\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}
