package postmortem

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Failures at the start, above all of init_process_group, about which there is something to try.

// LacksLibuv tells whether torch was asked to use libuv and was built without it.
//
// Source: c10d's TCPStore.cpp, "use_libuv was requested but PyTorch was build without libuv
// support".
func (f Findings) LacksLibuv() bool { return strings.Contains(f.text(), "without libuv support") }

// LacksOpenMPI tells whether the program asked for a variable that mpirun sets.
func (f Findings) LacksOpenMPI() bool {
	return strings.Contains(f.text(), "keyerror: 'ompi_comm_world_")
}

var missingModule = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bNo module named '([^'\s]+)'`)
})

// MissingModule is the module that python did not find, "" if that is not the reason.
func (f Findings) MissingModule() string {
	if m := missingModule().FindStringSubmatch(f.Message); m != nil {
		return m[1]
	}
	return ""
}

// PortInUse tells whether a server could not listen on this port because another one does.
//
// Source: strerror(3), in messages of c10d's socket.cpp ("failed to bind to [::]:29500 (errno: 98 -
// Address already in use)"), of its libuv store ("port: 29500, useIpv6: false, code: -98, name:
// EADDRINUSE, message: address already in use"), and of Python's asyncio.
func (f Findings) PortInUse(port int) bool {
	text := f.text()
	number := regexp.MustCompile(`\b` + strconv.Itoa(port) + `\b`)
	return strings.Contains(text, "address already in use") && number.MatchString(text)
}
