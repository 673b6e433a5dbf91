package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"

	"rdzv/internal/hint"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/secret"
)

// tokenSource says where this agent's token may be. If LoadToken creates it, that is reported.
func (l *Local) tokenSource(events *reporter) secret.TokenSource {
	s := secret.TokenSource{
		File: l.Config.TokenFile, Text: l.Config.Token, Home: host.Home(l.env), UID: os.Geteuid(),
		Created: func(path string) { events.send(TokenCreated{path}) },
	}
	switch {
	case l.onOneHost():
		s.Temp = host.TempDir(l.env)
	case l.platform() != "":
		s.Exists = true
	}
	return s
}

// onOneHost tells whether all agents of the job are known to be on this host.
func (l *Local) onOneHost() bool {
	p := l.Placement
	store, _, _ := meet.ParseStore(l.Config.Store)
	addr, _ := netip.ParseAddr(store)
	return p.Nodes == 1 || p.Size > 0 && p.LocalSize == p.Size ||
		store == "localhost" || addr.IsLoopback()
}

// loadToken returns this agent's token. The agents of other hosts could not have a token that is
// created in this host's temporary directory, so then there is none.
func (l *Local) loadToken(s secret.TokenSource) ([]byte, error) {
	token, err := secret.LoadToken(s)
	if _, is := errors.AsType[*secret.MissingError](err); is {
		return nil, l.tokenOfPlatform(err)
	}
	if _, is := errors.AsType[*secret.NoPlaceError](err); is {
		return nil, hint.With(err,
			"all hosts of the job need the same token: copy the output of rdzv token "+
				"into a file on each of them and name it with Config.TokenFile, or set RDZV_TOKEN to it")
	}
	return token, err
}

// tokenFiles names what contains the token, for messages.
func (l *Local) tokenFiles() string {
	if file := l.Config.TokenFile; file != "" {
		return fmt.Sprintf("the token file %q", file)
	}
	return "the home directory"
}

// A tokenPlace is where this agent's token is.
type tokenPlace struct {
	path      string // see secret.TokenSource.Place
	pod       bool   // this process is in a pod of Kubernetes, whose files are its own
	container bool   // it is, or may be, in a container
}

func (l *Local) tokenPlace() tokenPlace {
	p := tokenPlace{path: l.tokenSource(nil).Place(), pod: l.env["KUBERNETES_SERVICE_HOST"] != ""}
	for _, mark := range []string{".dockerenv", "run/.containerenv"} { // of docker and podman
		_, err := fs.Stat(l.Config.Root, mark)
		p.container = p.container || err == nil
	}
	return p
}

// remedy is what to do about an agent with another token than this one's.
func (p tokenPlace) remedy(n meet.DifferentToken) string {
	switch {
	case p.pod && n.Shared:
		return "set RDZV_TOKEN in all pods to the token of rdzv store, which prints where it is"
	case p.pod:
		return "set the same RDZV_TOKEN in all pods of the job, from a Secret: " +
			"a token file of a pod is its own"
	case p.container && p.path != "RDZV_TOKEN":
		return remedyOf(n, p.path) + "; in containers set the same RDZV_TOKEN in all of them"
	}
	return remedyOf(n, p.path)
}

// remedyOf is what to do on a host whose token is at place. Where the other agent's token is only
// that agent prints: it does not tell an agent that has not proved to be of the same user.
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

// adviseOnRejections completes the hint about a search that has found agents of other jobs or with
// other tokens.
func (l *Local) adviseOnRejections(search *meet.NotFoundError) {
	for _, r := range search.Rejections {
		switch n := r.(type) {
		case meet.DifferentToken:
			search.Hint = l.tokenPlace().remedy(n)
			return
		case meet.DifferentVersion:
			search.Hint = n.Hint()
			return
		case meet.DifferentStore:
			search.Hint = "give all nodes the same Config.Store"
		case meet.DifferentNodes:
			search.Hint = "run the same command with the same Config.Nodes on all nodes, and agents on " +
				"one host with a Config.NodeRank each"
		case meet.DifferentCommand:
			search.Hint = "run the same command with the same Config.Nodes on all nodes, " +
				"or give them the same Config.Job NAME"
		}
	}
}

// refusedBy is the error of an agent whose token, or version, the host of the store does not have.
func (l *Local) refusedBy(e *meet.RefusedError) error {
	switch n := e.By.(type) {
	case meet.DifferentVersion:
		return hint.With(fmt.Errorf("%w: it %s", e, protocol.Difference(n.Protocol)), n.Hint())
	case meet.DifferentToken:
		place := l.tokenPlace()
		return hint.With(fmt.Errorf("%w: its token is not the one in %s", e, place.path), place.remedy(n))
	}
	return e
}
