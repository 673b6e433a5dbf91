package login

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"rdzv/cmd/rdzv/internal/starter/hosts"
)

// Failures are the hosts on which rdzv could not be started, in the order of the list.
type Failures struct{ List []Failure }

// Failure is why rdzv could not be started on a host.
type Failure struct {
	Host  hosts.Host
	Cause string // in ssh's words if it has any: Permission denied (publickey)
	Hint  string // what the user can do: ssh-copy-id node2; or ""

	kind    string // Hint, with HOST instead of the host
	reached bool   // the login was successful
	refused bool   // the login was closed before authentication
}

// Error is one line.
func (f *Failure) Error() string {
	if f.reached {
		return "cannot start rdzv on " + f.Host.Name + ": " + f.Cause
	}
	return "cannot reach " + f.Host.Name + ": " + f.Cause
}

// Error has one line for each host.
func (f *Failures) Error() string {
	lines := make([]string, len(f.List))
	for i := range f.List {
		lines[i] = f.List[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Hint is what the user can do: a line for each kind of failure, which says for whom it is, too.
func (f *Failures) Hint() string {
	var kinds []string
	alike := map[string][]Failure{}
	for _, one := range f.List {
		if alike[one.kind] == nil && one.kind != "" {
			kinds = append(kinds, one.kind)
		}
		alike[one.kind] = append(alike[one.kind], one)
	}
	lines := make([]string, len(kinds))
	for i, kind := range kinds {
		first, others := alike[kind][0], alike[kind][1:]
		lines[i] = first.Hint
		if !strings.Contains(kind, "HOST") || len(others) == 0 {
			continue
		}
		names := make([]string, len(others))
		for j, other := range others {
			names[j] = other.Host.String()
		}
		if more := len(names) - maxNames; more > 0 {
			names = append(names[:maxNames], fmt.Sprintf("%d more", more))
		}
		lines[i] += " (likewise for " + strings.Join(names, ", ") + ")"
	}
	return strings.Join(lines, "\n")
}

// maxNames is how many hosts a hint names beside the first.
const maxNames = 4

// newFailure is a failure with advice in which HOST stands for the host.
func newFailure(h hosts.Host, cause, advice string) *Failure {
	hint := strings.ReplaceAll(advice, "HOST", h.String())
	return &Failure{Host: h, Cause: cause, Hint: hint, kind: advice}
}

// failed is an error with all failures, or nil.
func failed(failures []*Failure) error {
	all := &Failures{}
	for _, f := range failures {
		if f != nil {
			all.List = append(all.List, *f)
		}
	}
	if len(all.List) == 0 {
		return nil
	}
	return all
}

// failure is one of a host whose login was successful.
func (s *Session) failure(cause, advice string) *Failure {
	f := newFailure(s.Host, cause, advice)
	f.reached = true
	return f
}

// notGreeted is why a login did not get as far as running a command.
func (s *Session) notGreeted(err error, printed string) *Failure {
	if silent(err) {
		return newFailure(s.Host, withPrinted(noAnswer(s.all.Silence), printed, s.words.text()),
			"do its login files wait or read? ssh HOST true")
	}
	code, ended := s.exited()
	text := s.words.text()
	last := lastLine(text)
	if code == exitedItself && printed == "" && last != "" {
		if f := explain(s.Host, text); f != nil {
			return f
		}
		return &Failure{Host: s.Host, Cause: sshWords(last)}
	}
	cause, advice := fmt.Sprintf("the login ended with code %d", code), ""
	switch {
	case !ended:
		cause = "the login closed its output"
	case code == notFound:
		cause = "its login shell finds no program sh"
	default:
		advice = "does its account permit other commands? ssh HOST true"
	}
	return newFailure(s.Host, withPrinted(cause, printed, text), advice)
}

func noAnswer(limit time.Duration) string {
	return fmt.Sprintf("no answer for %d s", int(limit/time.Second))
}

// broken is why a host that has answered did not start rdzv.
func (s *Session) broken(err error) *Failure {
	if silent(err) {
		return s.failure(noAnswer(s.all.Silence)+", after its first", "does a file system hang there?")
	}
	code, ended := s.exited()
	last := lastLine(s.words.text())
	switch {
	case last != "":
		return s.failure(sshWords(last), "")
	case ended:
		return s.failure(fmt.Sprintf("ssh ended with code %d", code), "")
	}
	return s.failure(err.Error(), "")
}

const (
	exitedItself = 255 // the exit code of ssh if no command gave it one
	notFound     = 127 // the exit code of a shell that does not find a program
)

// exited is ssh's exit code. It gives ssh time to end after its output has, and to say why.
func (s *Session) exited() (code int, ended bool) {
	select {
	case <-s.ended:
		return s.code, true
	case <-time.After(2 * time.Second):
		return 0, false
	}
}

// withPrinted adds to a cause what the login printed: its last line on stdout, or else on stderr.
func withPrinted(cause, stdout, stderr string) string {
	last := lastLine(stdout)
	if last == "" {
		last = lastLine(stderr)
	}
	if last == "" {
		return cause
	}
	return cause + "; it printed " + strconv.Quote(last)
}
