package token

import (
	"cmp"
	"fmt"
	"io/fs"

	"rdzv/internal/hint"
	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/meet"
)

// Place is where an agent's token is.
type Place struct {
	Path      string // see secret.TokenSource.Place
	Pod       bool   // this process is in a pod of Kubernetes, whose files are its own
	Container bool   // it is, or may be, in a container
	None      bool   // this agent has no token (--insecure)
}

// Place is where it is.
func (o Owner) Place() Place {
	p := Place{
		Path: o.source().Place(), Pod: o.Env["KUBERNETES_SERVICE_HOST"] != "", None: o.None,
	}
	for _, mark := range []string{".dockerenv", "run/.containerenv"} { // of docker and podman
		_, err := fs.Stat(o.Root, mark)
		p.Container = p.Container || err == nil
	}
	return p
}

// Remedy returns a suggestion about an agent with another token than this one's. In pods and
// containers, which have files of their own, it names RDZV_TOKEN.
func (p Place) Remedy(n meet.DifferentToken) string {
	switch {
	case p.None:
		return "this agent has no token: give --insecure to all nodes, or to none"
	case p.Pod && n.Shared:
		return "set RDZV_TOKEN in all pods to the token of rdzv store, which prints where it is"
	case p.Pod:
		return "set the same RDZV_TOKEN in all pods of the job, from a Secret: " +
			"a token file of a pod is its own"
	case p.Container && p.Path != "RDZV_TOKEN":
		return remedyOf(n, p.Path) + "; in containers set the same RDZV_TOKEN in all of them"
	}
	return remedyOf(n, p.Path)
}

// remedyOf returns the suggestion for a host whose token is at place. Where the other agent's token
// is only that agent prints: it does not tell an agent that has not proved to be of the same user.
func remedyOf(n meet.DifferentToken, place string) string {
	other := cmp.Or(n.Host, n.Addr.String())
	there := "the token of " + other + ", which prints where it is (by default ~/.config/rdzv/token)"
	join := "or put before the command here the RDZV_JOIN=... that " + other + " prints on a terminal"
	const again = "and start rdzv here again"
	switch {
	case n.Shared && place == "RDZV_TOKEN":
		return "set RDZV_TOKEN here to the token of rdzv store, which prints where it is, " + again
	case n.Shared:
		return fmt.Sprintf("copy the token of rdzv store, which prints where it is, to %s here, %s",
			place, again)
	case n.Hosting && place == "RDZV_TOKEN":
		return fmt.Sprintf("set RDZV_TOKEN here to %s, %s; %s", there, again, join)
	case n.Hosting:
		return fmt.Sprintf("copy %s, to %s here, %s; %s", there, place, again, join)
	}
	return fmt.Sprintf("copy the token of one node to the other (here it is %s), and start rdzv "+
		"there again; or put before the command there the RDZV_JOIN=... that this node prints on a "+
		"terminal", place)
}

// Advise completes the hint about a search that has found agents of other jobs or with
// other tokens.
func (o Owner) Advise(search *meet.NotFoundError) {
	for _, r := range search.Rejections {
		switch n := r.(type) {
		case meet.DifferentToken:
			search.Hint = o.Place().Remedy(n)
			return
		case meet.DifferentVersion:
			search.Hint = n.Hint()
			return
		case meet.DifferentStore:
			search.Hint = "give all nodes the same --store"
		case meet.DifferentCommand:
			search.Hint = "run the same command with the same --nodes on all nodes, " +
				"or give them the same --job NAME"
		}
	}
}

// Refused is the error of an agent whose token, or version, the host of the store does not have.
func (o Owner) Refused(e *meet.RefusedError) error {
	switch n := e.By.(type) {
	case meet.DifferentVersion:
		return hint.With(fmt.Errorf("%w: it %s", e, protocol.Difference(n.Protocol)), n.Hint())
	case meet.DifferentToken:
		place := o.Place()
		if !place.None {
			e := fmt.Errorf("%w: its token is not the one in %s", e, place.Path)
			return hint.With(e, place.Remedy(n))
		}
		return hint.With(fmt.Errorf("%w: it has a token", e), place.Remedy(n))
	}
	return e
}
