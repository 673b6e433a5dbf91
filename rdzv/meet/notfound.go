package meet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// A NotFoundError means that no store was found before the context ended.
type NotFoundError struct {
	Tried      []Answer // sorted by address
	Rejections []error  // DifferentToken and DifferentCommand
	Hint       string   // what the user can do; may be empty
	Cause      error    // why the search ended
}

// An Answer is the last answer of one address.
type Answer struct {
	Name string // host name or description that the address belongs to; "" if none
	Addr netip.AddrPort
	Err  error // nil if there was no answer yet
}

// Unwrap returns the cause, such as context.DeadlineExceeded.
func (e *NotFoundError) Unwrap() error { return e.Cause }

// Error returns Lines in one line.
func (e *NotFoundError) Error() string {
	return "cannot find the store of the job: " + strings.Join(e.Lines(), "; ")
}

// Lines returns one line for each rejection, and one for each host and answer with all ports that
// gave this answer.
func (e *NotFoundError) Lines() []string {
	var lines []string
	for _, r := range e.Rejections {
		lines = append(lines, r.Error())
	}
	for _, answer := range e.answers() {
		lines = append(lines, "tried "+answer)
	}
	if len(lines) == 0 {
		lines = []string{"no agent has connected, and there is no address to try"}
	}
	return lines
}

func (e *NotFoundError) answers() []string {
	ports := map[[2]string][]string{}
	var order [][2]string
	for _, a := range e.Tried {
		key := [2]string{a.host(), a.text()}
		if ports[key] == nil {
			order = append(order, key)
		}
		ports[key] = append(ports[key], strconv.Itoa(int(a.Addr.Port())))
	}
	lines := make([]string, len(order))
	for i, key := range order {
		lines[i] = fmt.Sprintf("%s port %s: %s", key[0], strings.Join(ports[key], ","), key[1])
	}
	return lines
}

func (a Answer) host() string {
	if a.Name != "" && a.Name != a.Addr.Addr().String() {
		return a.Name + " " + a.Addr.Addr().String()
	}
	return a.Addr.Addr().String()
}

// text returns the answer in as few words as possible.
func (a Answer) text() string {
	if a.Err == nil {
		return "no answer yet"
	}
	if errno, ok := errors.AsType[syscall.Errno](a.Err); ok {
		return errno.Error()
	}
	if netErr, ok := errors.AsType[net.Error](a.Err); ok && netErr.Timeout() {
		return "no answer"
	}
	return a.Err.Error()
}
