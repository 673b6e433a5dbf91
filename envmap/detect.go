package envmap

import (
	"slices"
	"strconv"
	"strings"
)

// Detect takes the placement of this process from its environment. An empty choice recognises the launcher; otherwise
// choice names it (see Choices) and what other launchers left in the environment does not count. An environment
// without any launcher is a placement too: None, with everything Unknown.
//
// An error is an *Error; it names the variables that are missing, are no numbers, or contradict one another.
func Detect(env Env, choice Launcher) (Placement, error) {
	l, why, err := choose(env, choice)
	if err != nil {
		return Placement{}, err
	}
	r := newReader(env, l)
	r.p.rows = append(r.p.rows, Explained{What: "launcher", Value: string(l.name), From: env.shown(r.seen...), Note: why})
	l.read(r)
	if r.err == nil {
		r.p.derive()
		r.err = check(r.p)
	}
	if r.err == nil {
		batchBody(r)
		others(r, l, choice)
	}
	if r.err != nil {
		return Placement{}, r.err
	}
	return r.p, nil
}

// choose returns the launcher that is there, or the one that was asked for.
func choose(env Env, choice Launcher) (recogniser, string, error) {
	if choice == "" {
		for _, l := range order {
			if len(l.seen(env)) > 0 {
				return l, "", nil
			}
		}
		return find(None), "no launcher's variables are set", nil
	}
	candidates := meant(choice)
	if candidates == nil {
		return recogniser{}, "", &Error{Text: "cannot use launcher " + strconv.Quote(string(choice)) + ": not one of " + strings.Join(Choices(), ", ")}
	}
	for _, name := range candidates {
		if l := find(name); len(l.seen(env)) > 0 {
			return l, "as asked (--launcher)", nil
		}
	}
	return find(candidates[0]), "as asked (--launcher)", nil
}

// check finds numbers that contradict one another.
func check(p Placement) error {
	for _, c := range []struct {
		part, whole string
		least       int // of whole minus part
	}{
		{"rank", "size", 1}, {"local rank", "local size", 1}, {"node rank", "nodes", 1}, {"local rank", "size", 1}, {"node rank", "size", 1},
		{"local size", "size", 0}, {"nodes", "size", 0},
	} {
		part, whole := *p.number(c.part), *p.number(c.whole)
		if whole == 0 || part != Unknown && whole != Unknown && whole-part < c.least {
			return contradiction(p, c.part, c.whole)
		}
	}
	return nil
}

// contradiction names two numbers that cannot both be true, with their sources.
func contradiction(p Placement, a, b string) error {
	text := "cannot tell the placement: " + p.Source(a).told()
	if other := p.Source(b); other.Value != "unknown" {
		text += " does not go with " + other.told()
	}
	return &Error{Text: text, Hint: hintLauncher}
}

// told shows a number with its source: "rank 4 (OMPI_COMM_WORLD_RANK=4)".
func (e Explained) told() string {
	if e.From == "" {
		return e.What + " " + e.Value
	}
	return e.What + " " + e.Value + " (" + e.From + ")"
}

// others looks at the other launchers whose variables are there too. One that hosts others in its allocation is ignored;
// one that starts each process itself must tell the same rank and size, else nobody knows which of the two is the inner one.
func others(r *reader, chosen recogniser, choice Launcher) {
	for _, l := range order {
		seen := l.seen(r.env)
		if l.name == chosen.name || len(seen) == 0 || sameFamily(l.name, chosen.name) {
			continue
		}
		if choice == "" && !l.host && disagree(r.env, r.p, l) {
			r.err = &Error{
				Text: "cannot tell the launcher: " + string(chosen.name) + " says " + r.p.Source("rank").told() + " of " + r.p.Source("size").told() +
					", " + string(l.name) + " says " + r.env.shown(seen...),
				Hint: "--launcher " + string(chosen.name) + " or --launcher " + string(l.name) + " decides",
			}
			return
		}
		r.ignore(reason(chosen, l, seen, choice), seen...)
	}
}

// disagree reports that another launcher tells another rank or size. RANK and WORLD_SIZE that no torchrun set are no
// launcher's word: they are replaced, not believed.
func disagree(env Env, p Placement, l recogniser) bool {
	if l.name == Torchrun && !env.has("TORCHELASTIC_RUN_ID") {
		return false
	}
	other := newReader(env, l)
	l.read(other)
	return other.err != nil || other.p.Rank != p.Rank || other.p.Size != p.Size
}

func sameFamily(a, b Launcher) bool {
	for _, family := range aliases {
		if slices.Contains(family, a) && slices.Contains(family, b) {
			return true
		}
	}
	return false
}

// reason says why the variables of l do not count.
func reason(chosen, l recogniser, seen []string, choice Launcher) string {
	switch {
	case choice != "":
		return "--launcher " + string(choice)
	case l.name == Torchrun && !slices.Contains(seen, "TORCHELASTIC_RUN_ID"):
		return "set by hand, " + string(chosen.name) + " goes first"
	case l.host && !chosen.host:
		return string(chosen.name) + " runs inside " + string(l.name) + ", whose numbers are those of " + string(chosen.name) + "'s daemons"
	}
	return string(chosen.name) + " goes first"
}
