package envmap

import (
	"strconv"
	"strings"
)

// MaxTasks is the largest number of tasks, workers or nodes that is accepted.
const MaxTasks = 1 << 24

// A reader takes a placement from an environment and records the source of each value. After the
// first error it takes nothing more.
type reader struct {
	env     Env
	given   Given
	matched []string // the variables by which the launcher was recognised
	hint    string   // what to do if a required number is missing; "" is that of hintLacking
	lacks   string   // the variable of the first required number that is missing
	p       Placement
	err     *Error
}

func newReader(env Env, launcher Launcher, matched []string) *reader {
	p := Placement{Launcher: launcher, sources: map[string]Row{}}
	for _, n := range numbers {
		*n.in(&p) = Unknown
	}
	return &reader{env: env, matched: matched, p: p}
}

// take reads a number from the first of names that is set. If none is set it stays Unknown.
func (r *reader) take(what string, names ...string) {
	name := r.env.first(names...)
	if name == "" || r.err != nil {
		return
	}
	n, err := parseNumber(name, r.env[name])
	if r.err = err; err == nil {
		r.p.set(what, n, name+"="+r.env[name])
	}
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
	r.err, r.lacks = &Error{Text: text, Hint: r.hint}, names[0]
}

// takeWorld takes the four numbers whose variables differ in the prefix only.
func (r *reader) takeWorld(prefix string) {
	r.require("rank", prefix+"RANK")
	r.require("size", prefix+"SIZE")
	r.take("local rank", prefix+"LOCAL_RANK")
	r.take("local size", prefix+"LOCAL_SIZE")
}

// requireEqual checks that a second variable, if set, holds a number that was taken from another.
func (r *reader) requireEqual(what, name string) {
	n := *find(what).in(&r.p)
	if !r.env.has(name) || r.err != nil || n == Unknown {
		return
	}
	other, err := parseNumber(name, r.env[name])
	if r.err = err; err == nil && other != n {
		r.err = &Error{Text: "cannot determine the placement: " + r.p.source(what).From +
			", but " + r.env.shown(name), Hint: hintLauncher}
	}
}

// setUnknown explains how to get a number that the launcher does not set.
func (r *reader) setUnknown(what, note string) {
	r.p.sources[what] = Row{What: what, Value: "unknown", Note: note}
}

// setJob sets the job's identity, unless it is empty.
func (r *reader) setJob(job, from string) {
	if job != "" {
		r.p.Job = job
		r.p.others = append(r.p.others, Row{What: "job", Value: job, From: from})
	}
}

// common is the name of rank 0's host as its other nodes know it: on that host itself it may be
// localhost.
func (r *reader) common(host string) string {
	if own, _, _ := strings.Cut(r.given.Host, "."); host == "localhost" && own != "" && r.p.Rank == 0 {
		return own
	}
	return host
}

// setMaster sets the name of rank 0's host.
func (r *reader) setMaster(host, from string) {
	r.p.Master = host
	r.p.others = append(r.p.others, Row{What: "rank 0's node", Value: host, From: from})
}

// ignore explains why variables are ignored.
func (r *reader) ignore(note string, names ...string) {
	if shown := r.env.shown(names...); shown != "" {
		r.p.others = append(r.p.others, Row{What: "ignored", Value: shown, Note: note})
	}
}

// parseNumber parses a count or an index: decimal, 0 to MaxTasks.
func parseNumber(name, value string) (int, *Error) {
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
