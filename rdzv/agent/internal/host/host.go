// Package host gives facts about this machine and this user's place on it: names, addresses,
// directories, limits. It asks the kernel and the file system and changes nothing, but for the
// runtime directory, which it creates.
package host

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"rdzv/internal/hint"
)

// Name is the host name of this node, "localhost" if it has none.
func Name() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	return name
}

// NodeID is equal for the processes of one node and for no others: one booted kernel (boot_id), one
// network namespace (a container with its own network is a separate node), one host name. What
// cannot be read is left out.
func NodeID() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	network, _ := os.Readlink("/proc/self/ns/net")
	return strings.TrimSpace(string(boot)) + " " + network + " " + Name()
}

// RuntimeDir is the directory of this user's sockets, locks and stores: XDG_RUNTIME_DIR if only the
// user can access it, else rdzv-UID under TMPDIR, which is created. It is not removed when the
// agent exits: another job of the same user may be about to create something in it.
func RuntimeDir(env map[string]string) (string, error) {
	if dir := env["XDG_RUNTIME_DIR"]; dir != "" && private(dir) {
		return dir, nil
	}
	dir := filepath.Join(TempDir(env), fmt.Sprintf("rdzv-%d", os.Geteuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", hint.With(
			fmt.Errorf("cannot create the runtime directory %q: %w", dir, errors.Unwrap(err)),
			"set TMPDIR to a directory that you can write to",
		)
	}
	if !private(dir) {
		return "", hint.With(
			fmt.Errorf("cannot use the runtime directory %q: "+
				"it is not a directory of user %d with mode 0700", dir, os.Geteuid()),
			"remove it, or set XDG_RUNTIME_DIR or TMPDIR to another directory",
		)
	}
	return dir, nil
}

// TempDir is TMPDIR, else /tmp.
func TempDir(env map[string]string) string {
	if env["TMPDIR"] != "" {
		return env["TMPDIR"]
	}
	return "/tmp"
}

func private(dir string) bool {
	var stat unix.Stat_t
	return unix.Lstat(dir, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFDIR &&
		stat.Mode&0o077 == 0 && int(stat.Uid) == os.Geteuid()
}

// Home is the user's home directory, "" if there is none.
func Home(env map[string]string) string {
	if env["HOME"] != "" {
		return env["HOME"]
	}
	if u, err := user.Current(); err == nil {
		return u.HomeDir
	}
	return ""
}

// RouteTo is the source address that the kernel chooses for packets to addr; "" if there is no
// route. Connecting a datagram socket sends nothing.
func RouteTo(addr string) string {
	conn, err := net.Dial("udp", net.JoinHostPort(addr, "9"))
	if err != nil {
		return ""
	}
	defer conn.Close()
	return AddrOf(conn.LocalAddr())
}

// NCCLConfigured tells whether NCCL has a configuration file. rdzv does not override its settings.
func NCCLConfigured(env map[string]string) bool {
	for _, path := range []string{"/etc/nccl.conf", filepath.Join(Home(env), ".nccl.conf")} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// AddrOf is the IP address of a socket's end, "" if it has none.
func AddrOf(a net.Addr) string {
	addr, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return ""
	}
	return addr.Addr().Unmap().String()
}

// Size is that of a terminal.
type Size struct{ Rows, Columns int }

// NoSize is the size of a terminal that a launcher has made, unlike that of a person.
var NoSize = Size{}

// TerminalSize is the size of f, if it is a terminal; nil is none.
func TerminalSize(f *os.File) (size Size, is bool) {
	if f == nil {
		return size, false
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return size, false
	}
	_ = raw.Control(func(fd uintptr) {
		_, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		is = err == nil
		if now, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
			size = Size{int(now.Row), int(now.Col)}
		}
	})
	return size, is
}
