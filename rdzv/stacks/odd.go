package stacks

import "fmt"

// Odd is the worker that is not where the others are, if it is a single one, and why it is that;
// nil if there is none, and why it is not known.
func (r Report) Odd() (*Worker, string) {
	known := 0
	for _, g := range r.Groups {
		for _, w := range g.Workers {
			if !leftOut(w) {
				known++
			}
		}
	}
	stopped := func(w Worker) bool { return w.Main.State == "T" || w.Main.State == "t" }
	blocked := func(w Worker) bool { return w.Main.State == "D" }
	if w := r.single(stopped); w != nil {
		return w, "it is " + w.Main.Does
	}
	if w := r.single(blocked); w != nil {
		return w, "it hangs in the kernel: " + w.Main.Does
	}
	switch rest := r.Rest(); {
	case len(rest) == 1 && len(r.NotReached()) == 1:
		return &rest[0], "it has not reached init_process_group, where the others wait"
	case known < r.Ranks:
		return nil, fmt.Sprintf("only %d of %d ranks have told where they are", known, r.Ranks)
	case len(rest) == 1:
		others := fmt.Sprintf("the other %d", r.Ranks-1)
		if r.Ranks == 2 {
			others = "that of the other one"
		}
		return &rest[0], "its stack differs from " + others
	case len(r.Groups) == 1 && known == 1:
		return &r.Groups[0].Workers[0], "it is the only one"
	case len(r.Groups) == 1:
		return nil, "all are at the same place"
	}
	return nil, fmt.Sprintf("they are at %d different places", len(r.Groups))
}

// single is the only worker of which something is true; nil if there is none or more than one.
func (r Report) single(is func(Worker) bool) (found *Worker) {
	for _, g := range r.Groups {
		for i := range g.Workers {
			switch {
			case !is(g.Workers[i]):
			case found != nil:
				return nil
			default:
				found = &g.Workers[i]
			}
		}
	}
	return found
}

// HostOf is the host of a rank, "" if it is not known.
func (r Report) HostOf(rank int) string {
	w := r.single(func(w Worker) bool { return w.Rank == rank })
	if w == nil {
		return ""
	}
	return w.Host
}
