package envmap

import "strconv"

// MaxTasks is the largest number of tasks, workers or nodes that is believed; a larger one is a mistake.
const MaxTasks = 1 << 24

// reader takes a placement from an environment and remembers where each value came from. The first error stays.
type reader struct {
	env  Env
	seen []string // the variables by which the launcher was recognised
	p    Placement
	err  error
}

func newReader(env Env, l recogniser) *reader {
	r := &reader{env: env, seen: l.seen(env), p: Placement{Launcher: l.name}}
	for _, n := range numbers {
		*n.in(&r.p) = Unknown
	}
	return r
}

// take reads a number from the first of names that is set; none set leaves it Unknown.
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
	r.p.found(what, n, name+"="+r.env[name])
}

// must is take for a number without which the others make no sense; the others are named in the error.
func (r *reader) must(what string, names ...string) {
	if r.env.first(names...) != "" || r.err != nil {
		r.take(what, names...)
		return
	}
	text := "cannot tell the " + what + ": " + names[0] + " is not set"
	if shown := r.env.shown(r.seen...); shown != "" {
		text = "cannot tell the " + what + ": " + shown + " is set, but " + names[0] + " is not"
	}
	r.err = &Error{Text: text, Hint: hintLauncher}
}

// job sets the job's identity.
func (r *reader) job(job, from string) {
	if job != "" {
		r.p.Job = job
		r.p.rows = append(r.p.rows, Explained{What: "job", Value: job, From: from})
	}
}

// ignore explains variables that do not count.
func (r *reader) ignore(note string, names ...string) {
	if shown := r.env.shown(names...); shown != "" {
		r.p.rows = append(r.p.rows, Explained{What: "ignored", Value: shown, Note: note})
	}
}

// untold says how to get a number that nothing here tells.
func (r *reader) untold(what, note string) {
	r.p.rows = append(r.p.rows, Explained{What: what, Value: "unknown", Note: note})
}

func (r *reader) advise(text string) { r.p.Advice = append(r.p.Advice, text) }

// same checks that a second variable, if set, tells the same number.
func (r *reader) same(n int, as string, names ...string) {
	name := r.env.first(names...)
	if name == "" || r.err != nil || n == Unknown {
		return
	}
	if other, err := number(name, r.env[name]); err != nil {
		r.err = err
	} else if other != n {
		r.err = &Error{Text: "cannot tell the placement: " + r.env.shown(as) + ", but " + name + "=" + r.env[name], Hint: hintLauncher}
	}
}

// number reads a count or an index: decimal, 0 to MaxTasks.
func number(name, value string) (int, error) {
	n, err := strconv.Atoi(value)
	switch {
	case err != nil:
		return Unknown, &Error{Text: "cannot read " + name + "=" + strconv.Quote(value) + ": not a whole number", Hint: hintLauncher}
	case n < 0:
		return Unknown, &Error{Text: "cannot read " + name + "=" + value + ": negative", Hint: hintLauncher}
	case n > MaxTasks:
		return Unknown, &Error{Text: "cannot read " + name + "=" + value + ": more than " + strconv.Itoa(MaxTasks), Hint: hintLauncher}
	}
	return n, nil
}
