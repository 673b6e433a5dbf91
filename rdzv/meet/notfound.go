package meet

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// NotFoundError says that no store was found in time: every address that was tried, and what each
// answered last.
type NotFoundError struct {
	Tried     []Answer // sorted by address
	Strangers []error  // who seemed to be of the same user, and was not let in: DifferentToken or DifferentCommand
	Hint      string   // what the user can do under this launcher; may be empty
	Cause     error    // why the search ended
}

// An Answer is what one address said the last time it was asked.
type Answer struct {
	Name string // where the address came from, if that is a name
	Addr netip.AddrPort
	Err  error // nil: nothing yet
}

// Unwrap gives the cause, such as context.DeadlineExceeded.
func (e *NotFoundError) Unwrap() error { return e.Cause }

// Error is all in one line.
func (e *NotFoundError) Error() string {
	return "cannot find the store of the job: " + strings.Join(e.Lines(), "; ")
}

// Lines are the strangers, and then what was tried: what an address answers the same on several
// ports is told together.
func (e *NotFoundError) Lines() []string {
	var lines []string
	for _, who := range e.Strangers {
		lines = append(lines, who.Error())
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
		who, said := a.who(), a.said()
		key := [2]string{who, said}
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

func (a Answer) who() string {
	if a.Name != "" && a.Name != a.Addr.Addr().String() {
		return a.Name + " " + a.Addr.Addr().String()
	}
	return a.Addr.Addr().String()
}

// said is the answer in words as short as they can be.
func (a Answer) said() string {
	var errno syscall.Errno
	switch {
	case a.Err == nil:
		return "no answer yet"
	case errors.As(a.Err, &errno):
		return errno.Error()
	case errors.Is(a.Err, os.ErrDeadlineExceeded), isTimeout(a.Err):
		return "no answer"
	}
	return a.Err.Error()
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
