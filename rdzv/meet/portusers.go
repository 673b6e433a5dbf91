package meet

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"rdzv/internal/portuser"
)

// maxUsers limits the length of a line about ports that are in use.
const maxUsers = 3

// portUsers describes the processes of this host that listen on the ports: "pid 4711 (python3), pid
// 4712 (nc)". Only root sees those of other users; it is "" if none is seen.
func portUsers(proc fs.FS, ports []int) string {
	if proc == nil {
		return ""
	}
	var users []string
	for _, port := range ports {
		user := portuser.Of(proc, uint16(port))
		if user != "" && !slices.Contains(users, user) {
			users = append(users, user)
		}
	}
	if len(users) > maxUsers {
		users = append(users[:maxUsers], "and others")
	}
	return strings.Join(users, ", ")
}

// inUseBy adds to an error about ports that are in use who uses them.
func inUseBy(err error, proc fs.FS, ports []int) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	return &PortInUseError{Err: err, User: portUsers(proc, ports)}
}
