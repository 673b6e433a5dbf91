package postmortem

import "testing"

// Messages of torch 1.13 and 2.6, of a torch with libuv, and of Python.
func TestStartupFailures(t *testing.T) {
	const inUse = "RuntimeError: The server socket has failed to listen on any local network " +
		"address. "
	for _, c := range []struct {
		stderr              string
		lacksLibuv, inUse80 bool
	}{
		{"RuntimeError: use_libuv was requested but PyTorch was build without libuv support", true,
			false},
		{inUse + "The server socket has failed to bind to [::]:80 (errno: 98 - Address already " +
			"in use).", false, true},
		{inUse + "port: 80, useIpv6: false, code: -98, name: EADDRINUSE, message: address " +
			"already in use", false, true},
		{"OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 80): " +
			"address already in use", false, true},
		{"listening on port 80\nOSError: [Errno 98] Address already in use", false, true},
		{"OSError: [Errno 98] Address already in use", false, false},
		{inUse + "The server socket has failed to bind to [::]:8080 (errno: 98 - Address already " +
			"in use).", false, false},
		{"RuntimeError: cannot reach port 80", false, false},
		{"", false, false},
	} {
		f := Examine([]byte(c.stderr+"\n"), "", false)
		if f.LacksLibuv() != c.lacksLibuv || f.PortInUse(80) != c.inUse80 {
			t.Errorf("%q: lacks libuv %v, port 80 is in use %v; want %v, %v",
				c.stderr, f.LacksLibuv(), f.PortInUse(80), c.lacksLibuv, c.inUse80)
		}
	}
}
