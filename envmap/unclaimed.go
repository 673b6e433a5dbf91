package envmap

import "strings"

// A job never splits silently: if variables say that this process is one of several, and nobody
// has said that it is alone, then it is refused instead of being a job of one process.

// CheckComplete returns an *Error that says what to write, if a job of this placement would be one
// of one process although there are others, or there may be.
func (p Placement) CheckComplete() error {
	switch {
	case p.peers.certain:
		return &Error{
			Text: "cannot start a job of one process: " + p.peers.says() + " that there are others",
			Hint: p.peers.hint(),
		}
	case p.Unclaimed != "" && p.Launcher == None:
		return &Error{
			Text: "cannot determine the launcher: " + p.Unclaimed +
				" but no launcher was recognised",
			Hint: "unset them, or use them with --launcher env, or ignore them with " +
				"--launcher none",
		}
	case p.Unclaimed != "":
		return &Error{
			Text: "cannot determine the number of nodes: " + p.Unclaimed + ", but " +
				p.source("size").From + " (" + string(p.Launcher) +
				") says that there is one process",
			Hint: "unset those that are wrong, or say which count with --launcher NAME; " +
				"--nodes 1 makes this process a job of its own",
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
	say := "set RDZV_NODES to the number of nodes on each of them, or give --nodes N"
	if p.noCount != "" {
		say = "give --nodes N, or " + p.noCount
	}
	return say + "; with 1 each is a job of its own"
}

// findUnclaimed sets Placement.Unclaimed of a placement that nobody has chosen.
func findUnclaimed(r *reader, chosen recogniser) {
	switch {
	case r.given.Nodes != 0 && (r.p.Launcher == None || r.given.Nodes == 1):
	case r.p.Launcher == None:
		if r.p.Unclaimed = unclaimedByUser(r.env); r.p.Unclaimed != "" {
			return
		}
		r.p.peers, _ = peersOf(r.env)
		if r.p.peers.certain {
			r.completePeers()
			r.p.Unclaimed = r.p.peers.are() + " set"
		}
	case r.p.Size == 1:
		r.p.Unclaimed = unclaimedNodes(r, chosen)
	}
}

// completePeers takes what the starter does not tell from the allocation.
func (r *reader) completePeers() {
	if r.given.Root == nil {
		return
	}
	a, p := ReadAllocation(r.env, r.given.Root), &r.p.peers
	if p.nodes == Unknown && a.Nodes > 1 {
		p.nodes = a.Nodes
	}
	if p.host == "" {
		p.host = a.Host
	}
}

// unclaimedNodes are the variables of a platform or a starter that tell of several nodes, although
// the launcher has started one process. A step of several tasks, started by MPI or Slurm, may use
// all of the nodes.
func unclaimedNodes(r *reader, chosen recogniser) string {
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
	for _, s := range starters {
		if p, _ := s.peers(r.env); s.name != "" && p.nodes > 1 {
			return p.are() + " set"
		}
	}
	return ""
}

// sameVariables tells whether two recognisers found the same variables.
func sameVariables(a, b recogniser, env Env) bool {
	return env.shown(a.match(env)...) == env.shown(b.match(env)...)
}

// unclaimedByUser looks at variables that say how many processes there are, but identify no
// launcher. WORLD_SIZE says enough without RANK. What rdzv env has printed is nobody's job: it sets
// RDZV_DETECTED too.
func unclaimedByUser(env Env) string {
	if env.number("WORLD_SIZE") < 2 || env.has("RDZV_DETECTED") {
		return ""
	}
	return areSet(env, "RANK", "WORLD_SIZE")
}

// areSet is "RANK=0 and WORLD_SIZE=2 are set".
func areSet(env Env, names ...string) string {
	set := env.setOf(names...)
	if len(set) == 1 {
		return env.shown(set...) + " is set"
	}
	return strings.ReplaceAll(env.shown(set...), ", ", " and ") + " are set"
}
