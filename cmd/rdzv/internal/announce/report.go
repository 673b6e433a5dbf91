package announce

import (
	"fmt"
	"strings"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/visible"
	"rdzv/internal/plural"
	"rdzv/internal/shell"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/restart"
)

// noRestart is why no attempt follows the one that failed.
func noRestart(f agent.Failure) string {
	switch f.NoRestart {
	case restart.Exhausted:
		return fmt.Sprintf("this was the last of %s (--max-restarts %d)",
			plural.Of(f.Attempt+1, "attempt"), f.Attempt)
	case restart.Code:
		return fmt.Sprintf("%s is final", StatusLine(f.Code, f.Signal))
	case restart.Repeated:
		return fmt.Sprintf("two attempts failed with this message within %v of their start: "+
			"probably a bug of the program, not a fault", restart.Soon)
	case restart.Import:
		return fmt.Sprintf("the first attempt failed within %v because of an import: "+
			"the next one would, too", restart.Soon)
	case restart.MPI:
		return "the workers are MPI programs, which the launcher can start only once in each task"
	case restart.Lost:
		return "an agent was lost, or could not stop its workers in time"
	}
	return string(f.NoRestart)
}

// maxBetween is how many lines there may be between what a worker has printed and the report, so
// that the report does not repeat it.
const maxBetween = 5

// shows tells whether these lines are the last ones on stderr, except for a few. Where a traceback
// follows a progress bar, that may be the bar of another rank.
func shows(c *console.Console, lines []string) bool {
	const start = "Traceback (most recent call last):"
	if len(lines) > 0 && strings.Contains(lines[0], start) {
		lines = append([]string{start}, lines[1:]...)
	}
	return c.Shows(lines, maxBetween)
}

// reportText is the report; when is its line on that, and above tells whether the worker's stderr
// is what was written last.
func reportText(f agent.Failure, when string, above bool) string {
	var b strings.Builder
	earlier := ""
	if f.Successes != nil { // the failure may be the consequence
		earlier = fmt.Sprintf(" (%v)", f.Successes)
	}
	fmt.Fprintf(&b, "rank %d of %d failed first%s\n", f.Rank, f.WorldSize, earlier)
	fmt.Fprintf(&b, "  program  %s\n", shell.Line(f.Program...))
	if when != "" {
		fmt.Fprintf(&b, "  when     %s\n", when)
	}
	fmt.Fprintf(&b, "  where    %s, local rank %d, pid %d\n", f.Host, f.LocalRank, f.PID)
	fmt.Fprintf(&b, "  how      %s after %s\n", StatusLine(f.Code, f.Signal), roundTime(f.Took))
	if f.OOM {
		b.WriteString("           " + outOfMemory + "\n")
	}
	if f.Log != "" {
		fmt.Fprintf(&b, "  log      %s\n", f.Log)
	}
	if f.Message != "" {
		fmt.Fprintf(&b, "  message  %s\n", visible.Uncoloured(f.Message))
	}
	switch {
	case f.OnTerminal && f.Signal == 0: // it may have printed nothing
		b.WriteString("  its stderr is the terminal, which rdzv does not read; " +
			"--tag or --log-dir DIR puts the exception here\n")
	case above:
		b.WriteString("  its stderr is above\n")
	case len(f.Stderr) > 0:
		stream := "stderr"
		if f.Joined {
			stream = "output"
		}
		b.WriteString("  last lines of " + stream + ":\n")
		for _, line := range f.Stderr {
			b.WriteString("  | " + visible.Uncoloured(line) + "\n")
		}
	}
	for _, o := range f.Others {
		fmt.Fprintf(&b, "rank %d on %s also failed: %s", o.Rank, o.Host,
			StatusLine(o.Code, o.Signal))
		if o.Text != "" {
			b.WriteString(": " + visible.Uncoloured(o.Text))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// logLost says that a log lacks some of the output of a rank.
func logLost(c *console.Console, e agent.LogLost) {
	if e.Bytes == 0 {
		c.Warn("cannot write %q: %s: the output of rank %d is no longer kept", e.File, e.Text, e.Rank)
		return
	}
	c.Warn("%d bytes of the output of rank %d were dropped from %q", e.Bytes, e.Rank, e.File)
}

// outputLost says that some of the output of a rank was not shown.
func outputLost(c *console.Console, e agent.OutputLost) {
	line := fmt.Sprintf("%s of the output of rank %d could not be written to %s: %s",
		plural.Of(int(e.Bytes), "byte"), e.Rank, e.Stream, e.Text)
	if e.Log != "" {
		line += "; they are in " + e.Log
	}
	c.Warn("%s", line)
}
