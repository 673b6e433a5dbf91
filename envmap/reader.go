package envmap

import "strconv"

// MaxTasks is the largest number of tasks, workers or nodes that is accepted.
const MaxTasks = 1 << 24

// A reader takes a placement from an environment and records the source of each value. After the
// first error it takes nothing more.
type reader struct {
	env     Env
	matched []string // the variables by which the launcher was recognised
	p       Placement
	err     error
}

func newReader(env Env, l recogniser) *reader {
	r := &reader{env: env, matched: l.match(env), p: Placement{Launcher: l.name}}
	for _, n := range numbers {
		*n.in(&r.p) = Unknown
	}
	return r
}

// take reads a number from the first of names that is set. If none is set it stays Unknown.
func (r *reader) take(what string, names ...string) {
	name := r.env.first(names...)
	if name == "" || r.err != nil {
		return
	}
	n, err := number(name, r.env[name])
	if err != nil {
		r.err = err
		return
	}
	r.p.set(what, n, name+"="+r.env[name])
}

// require is take for a number without which the others are meaningless: none set is an error.
func (r *reader) require(what string, names ...string) {
	if r.env.first(names...) != "" || r.err != nil {
		r.take(what, names...)
		return
	}
	text := "cannot determine the " + what + ": "
	if shown := r.env.shown(r.matched...); shown != "" {
		text += shown + " is set, but " + names[0] + " is not"
	} else {
		text += names[0] + " is not set"
	}
	r.err = &Error{Text: text, Hint: hintLauncher}
}

// requireEqual checks that a second variable, if set, holds the number n that came from the
// variable source.
func (r *reader) requireEqual(n int, source string, names ...string) {
	name := r.env.first(names...)
	if name == "" || r.err != nil || n == Unknown {
		return
	}
	if other, err := number(name, r.env[name]); err != nil {
		r.err = err
	} else if other != n {
		contradiction := r.env.shown(source) + ", but " + r.env.shown(name)
		r.err = &Error{Text: "cannot determine the placement: " + contradiction, Hint: hintLauncher}
	}
}

// setUnknown explains how to get a number that the launcher does not set.
func (r *reader) setUnknown(what, note string) {
	r.p.rows = append(r.p.rows, Row{What: what, Value: "unknown", Note: note})
}

// setJob sets the job's identity, unless it is empty.
func (r *reader) setJob(job, from string) {
	if job != "" {
		r.p.Job = job
		r.p.rows = append(r.p.rows, Row{What: "job", Value: job, From: from})
	}
}

// ignore explains why variables are ignored.
func (r *reader) ignore(note string, names ...string) {
	if shown := r.env.shown(names...); shown != "" {
		r.p.rows = append(r.p.rows, Row{What: "ignored", Value: shown, Note: note})
	}
}

// number parses a count or an index: decimal, 0 to MaxTasks.
func number(name, value string) (int, error) {
	n, err := strconv.Atoi(value)
	text := "cannot read " + name + "=" + value
	switch {
	case err != nil:
		text = "cannot read " + name + "=" + strconv.Quote(value) + ": not a whole number"
	case n < 0:
		text += ": negative"
	case n > MaxTasks:
		text += ": larger than " + strconv.Itoa(MaxTasks)
	default:
		return n, nil
	}
	return Unknown, &Error{Text: text, Hint: hintLauncher}
}
