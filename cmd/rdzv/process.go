package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// This file asks the process and its host; everything else is told.

// host is the name of this node, for people.
func host() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	return name
}

// nodeID is equal for the processes of one node and for no others: one booted
// kernel (boot_id), one network (a container with its own network is a node of
// its own), one name. What cannot be read is left out.
func nodeID() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	network, _ := os.Readlink("/proc/self/ns/net")
	return strings.TrimSpace(string(boot)) + " " + network + " " + host()
}

// runtimeDir is where this user's sockets, locks and stores are: the first of
// $XDG_RUNTIME_DIR and a directory under $TMPDIR that is the user's alone. The
// directory stays when the agent exits: whoever removed it, even empty, would take
// it from another job of the same user that is about to create something in it.
func runtimeDir(env map[string]string) (string, error) {
	if dir := env["XDG_RUNTIME_DIR"]; dir != "" && private(dir) {
		return dir, nil
	}
	dir := filepath.Join(tempDir(env), fmt.Sprintf("rdzv-%d", os.Geteuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", advice{
			fmt.Errorf("cannot make the runtime directory %q: %w", dir, errors.Unwrap(err)),
			"set TMPDIR to a directory that you can write to",
		}
	}
	if !private(dir) {
		return "", advice{
			fmt.Errorf("cannot use the runtime directory %q: it is not a directory of user %d with mode 0700", dir, os.Geteuid()),
			"remove it, or set XDG_RUNTIME_DIR or TMPDIR to another place",
		}
	}
	return dir, nil
}

// tempDir is $TMPDIR, else /tmp.
func tempDir(env map[string]string) string {
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

// home is the user's home directory, "" if there is none.
func home(env map[string]string) string {
	if env["HOME"] != "" {
		return env["HOME"]
	}
	if u, err := user.Current(); err == nil {
		return u.HomeDir
	}
	return ""
}

// interfaceOf is the name of the network interface that holds addr, "" if none
// does.
func interfaceOf(addr string) string {
	ip := net.ParseIP(addr)
	interfaces, err := net.Interfaces()
	if ip == nil || err != nil {
		return ""
	}
	for _, i := range interfaces {
		addrs, _ := i.Addrs() // it may just have gone
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return i.Name
			}
		}
	}
	return ""
}

// routeTo is this node's own address on the way to addr, by the kernel's routes;
// "" if there is none. Connecting a datagram socket sends nothing.
func routeTo(addr string) string {
	conn, err := net.Dial("udp", net.JoinHostPort(addr, "9"))
	if err != nil {
		return ""
	}
	defer conn.Close()
	return hostOf(conn.LocalAddr())
}

// ncclConfigured tells whether NCCL has a configuration file, whose word holds
// over ours.
func ncclConfigured(env map[string]string) bool {
	for _, path := range []string{"/etc/nccl.conf", filepath.Join(home(env), ".nccl.conf")} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}
