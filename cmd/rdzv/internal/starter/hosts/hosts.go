// Package hosts reads lists of hosts: the argument of --hosts, and host files as Open MPI and MPICH
// read them.
package hosts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"rdzv/internal/hint"
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

// How hosts are written, which is the advice about what is wrong with them.
const (
	// ListForm is that of the argument of --hosts.
	ListForm = "hosts are separated by commas, without spaces: --hosts node1:8,node2:8"
	fileForm = "a host file has one host on each line: node1 slots=8, or node1:8"
)

// Parse reads the argument of --hosts: [user@]host[:workers], separated by commas.
func Parse(text string) ([]Host, error) {
	l := list{form: ListForm}
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			return nil, hint.With(fmt.Errorf("cannot use hosts %q: one of them is empty", text), ListForm)
		}
		h, err := parseHost(item)
		l.add(h, err)
	}
	return l.hosts, errors.Join(l.errs...)
}

// ReadFile reads a host file from r. Its errors begin with the file's name and the line.
func ReadFile(r io.Reader, name string) ([]Host, error) {
	l := list{form: fileForm}
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimPrefix(lines.Text(), "\ufeff")
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		l.place = fmt.Sprintf("%s:%d: ", name, number)
		h, err := parseLine(line)
		l.add(h, err)
	}
	if err := lines.Err(); err != nil {
		return nil, Unreadable(name, err)
	}
	if len(l.hosts)+len(l.errs) == 0 {
		return nil, hint.With(fmt.Errorf("cannot use host file %q: it names no host", name), fileForm)
	}
	return l.hosts, errors.Join(l.errs...)
}

// Unreadable says that a host file cannot be read.
func Unreadable(name string, err error) error {
	if failed, is := errors.AsType[*fs.PathError](err); is {
		err = failed.Err // which does not repeat the name
	}
	return hint.With(fmt.Errorf("cannot read host file %q: %w", name, err), fileForm)
}

// list is the hosts that were read, and all that is wrong with them.
type list struct {
	form  string // how they are written
	place string // in a file, of the next one; "" if there is none
	hosts []Host
	errs  []error
}

// add adds a host, or what is wrong with it.
func (l *list) add(h Host, err error) {
	if err == nil {
		err = l.repeated(h)
	}
	if err == nil {
		l.hosts = append(l.hosts, h)
		return
	}
	advice := l.form
	if own, has := errors.AsType[interface {
		error
		Hint() string
	}](err); has {
		advice = own.Hint()
	}
	l.errs = append(l.errs, hint.With(fmt.Errorf("%s%w", l.place, err), advice))
}

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
