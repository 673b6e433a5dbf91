package agent

import (
	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
)

// keepTerminal tells whether the workers of a task get the terminal itself that is their stderr:
// the worker of a job that has no other one, whose traceback is the last thing there; and those of
// a launcher that has made the terminal, which then has no size.
func (l *Local) keepTerminal(task *Local) bool {
	size, is := host.TerminalSize(task.Config.Stderr)
	made := task.Placement.Launcher != envmap.None && size == host.NoSize
	return is && (made || !l.all().mayBeSeveral())
}

// unread tells whether stderr of the i-th worker was a terminal that was not read, and why, unless
// that is so for every job of one worker. noTerminal is why it got no pseudoterminal.
func (l *Local) unread(world rdzv.World, i int, noTerminal error) (is bool, why string) {
	task, seat := l.all().of(i), world.Seat
	c := &task.Config
	shown := l.shown.Has(seat.RankOf(i), seat.LocalRankOf(i))
	switch _, terminal := host.TerminalSize(c.Stderr); {
	case !shown || !terminal || c.piped():
		return false, ""
	case c.NoCapture:
		return true, "--capture=never"
	case noTerminal != nil:
		return true, "no pseudoterminal: " + noTerminal.Error()
	}
	return l.keepTerminal(task), ""
}
