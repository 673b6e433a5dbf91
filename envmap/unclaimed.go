package envmap

import "strings"

// A job never splits silently: if variables say that this process is one of several, and nobody
// has said that it is alone, then it is refused instead of being a job of one process.

// CheckComplete returns an *Error that says what to write, if a job of this placement would be one
// of one process although there are others, or there may be.
func (p Placement) CheckComplete() error {
	switch {
	case p.Unclaimed != "" && p.Launcher == None:
		return &Error{
			Text: "cannot determine the launcher: " + p.Unclaimed +
				" but no launcher was recognised",
			Hint: hintUnclaimed(p.Unclaimed),
		}
	case p.Unclaimed != "":
		return &Error{
			Text: "cannot determine the number of nodes: " + p.Unclaimed + ", but " +
				p.source("size").From + " (" + string(p.Launcher) +
				") says that there is one process",
			Hint: "unset those that are wrong, or say which count with Config.Launcher NAME; " +
				"Config.Nodes 1 makes this process a job of its own",
		}
	case p.Platform != "" && p.Size == Unknown:
		return &Error{
			Text: "cannot determine the number of nodes: " + p.source("rank").From +
				" is set, but not how many there are",
			Hint: p.hintCount(),
		}
	}
	return nil
}

func (p Placement) hintCount() string {
	say := "give Config.Nodes N to each of them"
	if p.noCount != "" {
		say = "give Config.Nodes N, or " + p.noCount
	}
	return say + "; with 1 each is a job of its own"
}

// hintUnclaimed returns the hint about Placement.Unclaimed if no launcher was recognised.
func hintUnclaimed(variables string) string {
	if strings.HasPrefix(variables, "NODE_RANK") {
		return "unset them, or use them with Config.Nodes N Config.NodeRank R Config.Store HOST, " +
			"or ignore them with Config.Nodes 1"
	}
	return "unset them, or use them with Config.Launcher env, or ignore them with " +
		"Config.Launcher none"
}

// unclaimed is Placement.Unclaimed of a placement that nobody has chosen. A step of several tasks
// started by MPI or Slurm may use all nodes of a platform.
func unclaimed(r *reader, chosen recogniser) string {
	switch {
	case r.p.Launcher == None && r.given.Nodes == 0:
		return unclaimedByUser(r.env)
	case r.p.Size != 1 || r.given.Nodes == 1:
		return ""
	}
	for _, l := range order() {
		if !l.platform || sameVariables(l, chosen, r.env) {
			continue
		}
		matched := l.match(r.env)
		if len(matched) == 0 {
			continue
		}
		if theirs := l.placement(r.env, r.given); theirs.err != nil || theirs.p.Size > 1 {
			return areSet(r.env, matched...)
		}
	}
	return ""
}

// sameVariables tells whether two recognisers found the same variables.
func sameVariables(a, b recogniser, env Env) bool {
	return env.shown(a.match(env)...) == env.shown(b.match(env)...)
}

// counted are variables that scripts set themselves: index and count.
var counted = [][2]string{
	{"RANK", "WORLD_SIZE"}, {"NODE_RANK", "NNODES"}, {"NODE_RANK", "NUM_NODES"},
}

// unclaimedByUser looks at variables that identify no launcher. WORLD_SIZE says enough without
// RANK. What rdzv env has printed is nobody's job: it sets RDZV_DETECTED too.
func unclaimedByUser(env Env) string {
	for _, pair := range counted {
		count, err := parseNumber(pair[1], env[pair[1]])
		if err != nil || count < 2 || env.has("RDZV_DETECTED") {
			continue
		}
		if env.has(pair[0]) || pair[1] == "WORLD_SIZE" {
			return areSet(env, pair[:]...)
		}
	}
	return ""
}

// areSet is "RANK=0 and WORLD_SIZE=2 are set".
func areSet(env Env, names ...string) string {
	set := env.setOf(names...)
	if len(set) == 1 {
		return env.shown(set...) + " is set"
	}
	return strings.ReplaceAll(env.shown(set...), ", ", " and ") + " are set"
}
