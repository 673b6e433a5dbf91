package meet

import (
	"crypto/rand"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A socket that belongs to no agent of this user, as another user may bind one, keeps an agent from
// hosting only as long as it takes to find a store of the job that is there.
func TestHostClaimOfAnotherUser(t *testing.T) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	host := hostClaim{name: "test/" + rand.Text()}
	// It does not listen, so that nobody can find out whose it is.
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@rdzv/" + host.name}); err != nil {
		t.Fatal(err)
	}
	if host.try() {
		t.Error("the agent hosts at once")
	}
	if limit := time.Until(host.without); limit > 2*otherUserLimit {
		t.Errorf("the agent does not host for %v, want at most %v", limit, 2*otherUserLimit)
	}
	host.without = time.Now().Add(-time.Nanosecond)
	if !host.try() || host.held != nil {
		t.Errorf("the agent does not host without the claim: %+v", host)
	}
}
