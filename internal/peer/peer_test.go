package peer

import (
	"net"
	"os"
	"testing"

	"rdzv/internal/proctest"
)

func TestMapsAll(t *testing.T) {
	for _, c := range []struct {
		name, uidMap string
		want         bool
	}{
		{"first namespace", "         0          0 4294967295\n", true},
		{"all, exchanged", "0 1000 1\n1 1 999\n1000 0 1\n1001 1001 4294966294\n", true},
		{"one user", "     65534       1001          1\n", false},
		{"root", "0 1001 1\n", false},
		{"container that maps nobody", "         0     100000      65536\n", false},
		{"rootless container", "0 1000 1\n1 100000 65536\n", false},
		{"not mapped yet", "", false},
		{"not a map", "0 0\n", false},
		{"no number", "0 0 all\n", false},
	} {
		if got := mapsAll(c.uidMap); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// TestOf: the other end is a process of this user, of whom it is known in a namespace that maps this
// user alone as well.
func TestOf(t *testing.T) {
	check(t, "")
	proctest.Inside(t, "--user", "--map-user=1234")
}

// TestOfOverflowUser: in a namespace in which this user has the number of all others, it is not
// known.
func TestOfOverflowUser(t *testing.T) {
	if proctest.Inside(t, "--user", "--map-user=65534") {
		check(t, "user 65534 is the overflow user of this user namespace")
	}
}

// check checks the error of Of for a process of this user, which is this one.
func check(t *testing.T, want string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@peer/" + t.Name() + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	errControl := raw.Control(func(fd uintptr) {
		who, err := Of(int(fd))
		if who == nil || int(who.Uid) != os.Geteuid() || int(who.Pid) != os.Getpid() {
			t.Errorf("it is %+v, want this process", who)
		}
		if got := text(err); got != want {
			t.Errorf("error %q, want %q", got, want)
		}
	})
	if errControl != nil {
		t.Fatal(errControl)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
