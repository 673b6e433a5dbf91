package stacks

import (
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"path"
	"strconv"
	"strings"
)

// peers are the other ends of TCP connections by the inodes of their sockets.
type peers map[uint64]netip.AddrPort

// store is the kind of a connection to MASTER_PORT.
const store = "torch's store in rank 0"

// objects is the kind of what all these descriptors refer to, and the first of it. If they are of
// several kinds it is "", unless one is the store.
func (in *inspection) objects(fds []int) (kind, object string) {
	for i, fd := range fds {
		k, o := in.object(fd)
		switch {
		case i == 0 || k == store:
			kind, object = k, o
		case k != kind && kind != store:
			kind, object = "", ""
		}
		if k == store {
			break
		}
	}
	if kind != "" && kind != store && len(fds) > 1 && object != "" {
		object += fmt.Sprintf(" and %d more", len(fds)-1)
	}
	return kind, object
}

// object is the kind and the name of what a descriptor refers to.
func (in *inspection) object(fd int) (kind, name string) {
	link := path.Join(strconv.Itoa(in.pid), "fd", strconv.Itoa(fd))
	target, err := fs.ReadLink(in.Proc, link)
	if err != nil {
		return "", ""
	}
	if text, is := strings.CutPrefix(target, "socket:["); is {
		inode, _ := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64)
		peer, tcp := in.peers()[inode]
		switch {
		case tcp && int(peer.Port()) == in.MasterPort:
			return store, peer.String()
		case tcp:
			return "a TCP connection", peer.String()
		}
		return "a socket", ""
	}
	switch anonymous, _, _ := strings.Cut(target, ":["); {
	case anonymous == "pipe":
		return "a pipe", ""
	case strings.HasPrefix(target, "/dev/pts/"), strings.HasPrefix(target, "/dev/tty"):
		return "a terminal", target
	case strings.HasPrefix(target, "/dev/"):
		return "a device", target
	case strings.HasPrefix(target, "/"):
		return "a file", target
	}
	return "", ""
}

// maxDescriptors is how many of the descriptors on whose events a thread waits are looked at.
const maxDescriptors = 16

// polled are the descriptors in an array of struct pollfd in the memory of the process.
func (in *inspection) polled(addr, n uint64) (fds []int) {
	f, err := in.Proc.Open(path.Join(strconv.Itoa(in.pid), "mem"))
	if err != nil {
		return nil
	}
	defer f.Close()
	const size = 8
	b := make([]byte, size*min(n, maxDescriptors))
	memory, is := f.(io.ReaderAt)
	if !is {
		return nil
	}
	if _, err := memory.ReadAt(b, int64(addr)); err != nil {
		return nil
	}
	for ; len(b) > 0; b = b[size:] {
		fds = append(fds, int(int32(binary.NativeEndian.Uint32(b))))
	}
	return fds
}

// watched are the descriptors in the list of an epoll descriptor.
func (in *inspection) watched(fd int) (fds []int) {
	text, err := in.read("fdinfo", strconv.Itoa(fd))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == "tfd:" && len(fds) < maxDescriptors {
			target, _ := strconv.Atoi(words[1])
			fds = append(fds, target)
		}
	}
	return fds
}
