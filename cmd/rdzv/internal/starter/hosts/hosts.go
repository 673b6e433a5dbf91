// Package hosts reads lists of hosts: the argument of --hosts, and host files as Open MPI and MPICH
// read them.
package hosts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Host is a host that ssh can log in to.
type Host struct {
	User    string // "": ssh's choice
	Name    string // a name or address, or an alias from ssh's config; an IPv6 address has no brackets
	Workers int    // 0: the list does not say how many
}

// String is the host as ssh's command line has it: [user@]name.
func (h Host) String() string {
	if h.User == "" {
		return h.Name
	}
	return h.User + "@" + h.Name
}

// Parse reads the argument of --hosts: [user@]host[:workers], separated by commas.
func Parse(text string) ([]Host, error) {
	var l list
	for item := range strings.SplitSeq(text, ",") {
		h, err := parseHost(strings.TrimSpace(item))
		l.add(h, "", err)
	}
	return l.hosts, errors.Join(l.errs...)
}

// ReadFile reads a host file from r. Its errors begin with the file's name and the line.
func ReadFile(r io.Reader, name string) ([]Host, error) {
	var l list
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimPrefix(lines.Text(), "\ufeff")
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		h, err := parseLine(line)
		l.add(h, fmt.Sprintf("%s:%d: ", name, number), err)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read host file %q: %w", name, err)
	}
	if len(l.hosts)+len(l.errs) == 0 {
		return nil, fmt.Errorf("cannot use host file %q: it names no host", name)
	}
	return l.hosts, errors.Join(l.errs...)
}

// list is the hosts that were read, and all that is wrong with them.
type list struct {
	hosts []Host
	errs  []error
}

// add adds a host, or what is wrong with it, at a place in a file.
func (l *list) add(h Host, place string, err error) {
	if err == nil {
		err = l.repeated(h)
	}
	switch {
	case err == nil:
		l.hosts = append(l.hosts, h)
	case place == "":
		l.errs = append(l.errs, err)
	default:
		l.errs = append(l.errs, placed{place, err})
	}
}

// placed is an error with its place in a file. It keeps the error's hint.
type placed struct {
	place string
	error
}

func (p placed) Error() string { return p.place + p.error.Error() }
func (p placed) Unwrap() error { return p.error }

// repeated is an error if the list has the host's name already. For mpirun each repetition is one
// more process, which a number says more clearly.
func (l *list) repeated(h Host) error {
	for _, other := range l.hosts {
		if strings.EqualFold(other.Name, h.Name) {
			return refusal(h.Name, "it is in the list already",
				"list each host once, with the number of its workers: "+bracketed(h.Name)+":2")
		}
	}
	return nil
}
