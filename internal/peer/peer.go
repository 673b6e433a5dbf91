// Package peer identifies the process at the other end of a Unix socket, and its user.
//
// In a user namespace all users that have no number there have the number of
// /proc/sys/kernel/overflowuid, which is usually that of nobody. A process with this number may be
// anybody's.
package peer

import (
	"bufio"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Of returns the credentials that the process at the other end of a socket had when it called
// connect(2) or listen(2). With an error about its user, it returns them too; see CheckUser.
func Of(fd int) (*syscall.Ucred, error) {
	who, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return nil, errors.New("cannot identify the other process: " + err.Error())
	}
	return who, CheckUser(int(who.Uid))
}

// CheckUser returns an error if other users of this machine have the same number as this one in the
// user namespace of this process.
func CheckUser(uid int) error {
	const usual = 65534
	overflow := usual
	if text, err := os.ReadFile("/proc/sys/kernel/overflowuid"); err == nil {
		overflow, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if uid != overflow {
		return nil
	}
	uids, err := os.ReadFile("/proc/self/uid_map")
	if err == nil && mapsAll(string(uids)) || os.IsNotExist(err) && hasProc() {
		return nil
	}
	return errors.New("user " + strconv.Itoa(uid) + " is the overflow user of this user namespace")
}

// hasProc tells whether /proc is mounted. A kernel without user namespaces has no uid_map there.
func hasProc() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}

// mapsAll tells whether each user has a number of its own in a user namespace with this uid_map
// (user_namespaces(7)), as in the first one. The last number, -1, is no user.
func mapsAll(uidMap string) bool {
	sum := 0
	for lines := bufio.NewScanner(strings.NewReader(uidMap)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			return false
		}
		n, err := strconv.ParseUint(fields[2], 10, 32)
		if err != nil {
			return false
		}
		sum += int(n)
	}
	return sum >= math.MaxUint32
}
