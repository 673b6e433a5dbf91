package meet

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// NotFoundError says that no store was found in time: every address that was tried, and what each answered last.
type NotFoundError struct {
	Tried []Answer // sorted by address
	Hint  string   // what the user can do under this launcher; may be empty
	Cause error    // why the search ended
}

// An Answer is what one address said the last time it was asked.
type Answer struct {
	Name string // where the address came from, if that is a name
	Addr netip.AddrPort
	Err  error // nil: nothing yet
}

// Unwrap gives the cause, such as context.DeadlineExceeded.
func (e *NotFoundError) Unwrap() error { return e.Cause }

// Error is one line: addresses with the same answer on all ports are told together.
func (e *NotFoundError) Error() string {
	if len(e.Tried) == 0 {
		return "cannot find the job's store: no address to try is known here"
	}
	return "cannot find the job's store: tried " + strings.Join(e.lines(), "; ")
}

func (e *NotFoundError) lines() []string {
	var lines []string
	for i := 0; i < len(e.Tried); {
		j := i + 1
		for j < len(e.Tried) && e.Tried[j].Addr.Addr() == e.Tried[i].Addr.Addr() && e.Tried[j].said() == e.Tried[i].said() {
			j++
		}
		lines = append(lines, together(e.Tried[i:j]))
		i = j
	}
	return lines
}

func together(same []Answer) string {
	a := same[0]
	ports := make([]string, len(same))
	for i := range same {
		ports[i] = fmt.Sprint(same[i].Addr.Port())
	}
	name := ""
	if a.Name != "" && a.Name != a.Addr.Addr().String() {
		name = a.Name + " "
	}
	return fmt.Sprintf("%s%s port %s: %s", name, a.Addr.Addr(), strings.Join(ports, ","), a.said())
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
