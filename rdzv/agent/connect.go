package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/internal/procfs"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/cadence"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/agent/internal/limits"
	"rdzv/rdzv/agent/internal/postmortem"
	"rdzv/rdzv/agent/internal/samehost"
	"rdzv/rdzv/agent/internal/storehost"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/store"
)

// claimHost makes this agent the only one on this host that looks for the others of its job, until
// release is called.
func claimHost(ctx context.Context, l *Local, events *reporter) (release func(), err error) {
	p, c := l.Placement, l.Config
	if p.Launcher != envmap.None || p.NodeRank != envmap.Unknown || l.Agents == 1 {
		return func() {}, nil
	}
	load := func() (token []byte, err error) { // nil without one; an error is that of the search too
		if !c.Insecure && c.Join == "" && !c.Etcd.Given() {
			token, _ = l.token().Load(events.tokenCreated, nil)
		}
		return token, nil
	}
	token, err := host.Await(ctx, events.slowFiles(l.token().Files()), load)
	if err != nil {
		return nil, err
	}
	return samehost.Claim(token, fmt.Sprintf("%q %q %q %d %v %q", l.Job, c.Store, c.Join, c.PortLow,
		c.Etcd, c.Etcd.Prefix))
}

// connect finds the store, or hosts it. If it fails the caller must close the connection.
func (c *connection) connect(ctx context.Context) (err error) {
	slow := c.events.slowFiles("the runtime directory (XDG_RUNTIME_DIR or TMPDIR)")
	c.dir, c.noDir = host.Await(ctx, slow, func() (string, error) {
		return prepareRuntimeDir(c.local.env)
	})
	c.inXDG = c.dir == c.local.env["XDG_RUNTIME_DIR"]
	if c.noDir != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch {
	case c.external():
		return c.dialEtcd(ctx)
	case isOnly(c.local):
		return c.host(ctx, nil)
	}
	config := c.meetConfig()
	config.Token = func() ([]byte, error) {
		slow := c.events.slowFiles(c.local.token().Files())
		return host.Await(ctx, slow, c.loadToken)
	}
	if c.meeting, err = meet.Meet(ctx, config, c.host); err != nil {
		return adviseOnPort(err, c.local.Config.Store)
	}
	return nil
}

// prepareRuntimeDir makes the runtime directory and removes from it what killed agents have left.
func prepareRuntimeDir(env envmap.Env) (string, error) {
	dir, err := host.RuntimeDir(env)
	if err == nil {
		meet.RemoveStale(procfs.System, dir)
		postmortem.RemoveOldFiles(dir, time.Now())
	}
	return dir, err
}

// adviseOnPort adds a suggestion to an error about a port that is in use.
func adviseOnPort(err error, store string) error {
	host, port, _ := meet.ParseStore(store)
	inUse, _ := errors.AsType[*meet.PortInUseError](err)
	switch {
	case !errors.Is(err, syscall.EADDRINUSE):
		return err
	case inUse != nil && inUse.Advice != "":
		return hint.With(err, inUse.Advice)
	case port != 0:
		return hint.With(err, "use --store "+host+
			" without a port: each job then chooses a free one")
	}
	return hint.With(err, "choose other ports with --port-range LOW-HIGH")
}

// host starts the store in this process and leads the job. listener is nil for a single agent.
func (c *connection) host(ctx context.Context, listener net.Listener) error {
	l := c.local
	if err := cmp.Or(c.noDir, limits.ToHost(l.Agents)); err != nil {
		return &ProblemError{err}
	}
	c.unable = limits.ForAll(l.Agents, l.Workers) // before the store opens files
	s, err := store.Start(ctx, store.Config{
		Dir: c.dir, PeerTimeout: l.Config.PeerTimeout,
		Failed: func(err error) { l.Config.StoreFailed(c.noRoom(err)) },
	})
	if err != nil {
		return c.noRoom(err)
	}
	leads := c.leaderConfig()
	leads.PeerTimeout = l.Config.PeerTimeout
	h, err := storehost.New(ctx, s, listener, leads)
	if err != nil {
		return err
	}
	c.hosted, c.client = h, s.Client()
	return nil
}

// leaderConfig is how this agent leads the job, if it does.
func (c *connection) leaderConfig() rdzv.LeaderConfig {
	l := c.local
	lead := rdzv.LeaderConfig{
		Rules: l.Config.Rules, Job: l.Job, Tasks: l.Agents, MinTasks: l.layout().MinTasks(),
		Nodes: meet.NodesOf(c.meetConfig()), Unattended: !l.Placement.Launcher.Reports(),
		Refused: c.refusals.ByToken, OtherVersion: c.refusals.ByVersion,
		Replaceable:   l.layout().MayReplace(c.sharedStore()),
		SettleTimeout: l.Config.settleTimeout(), LostGrace: l.Config.lostGrace(),
		Notify: c.events.notice, NextWaiting: cadence.Cadence{Every: l.Config.ReportEvery}.Next,
	}
	if l.Config.Check != nil { // spares are checked like other nodes
		lead.Spares = 0
	}
	return lead
}

// noRoom adds a suggestion to an error if the disk with the runtime directory is full.
func (c *connection) noRoom(err error) error {
	switch {
	case !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT):
		return err
	case c.inXDG:
		return hint.With(err, "unset XDG_RUNTIME_DIR, and set TMPDIR to a directory with free space")
	}
	return hint.With(err, "set TMPDIR to a directory with free space")
}

// agreed means that all agents have joined.
func (c *connection) agreed() {
	if c.meeting != nil {
		c.meeting.Agreed()
	}
}
