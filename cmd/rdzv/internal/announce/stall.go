package announce

import (
	"fmt"
	"strings"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/tables"
	"rdzv/rdzv"
	"rdzv/rdzv/agent"
	"rdzv/rdzv/stacks"
)

// stalled writes where the ranks are that make no progress. The line about the end follows, if the
// attempt ends.
func stalled(c *console.Console, e agent.Stalled) {
	c.EndStatus()
	if !e.Ends {
		c.Error("%s", stallLine(e.Stall))
	}
	c.Info("where the ranks are:\n%s", indented(tables.Stacks([]stacks.Report{e.Stacks}, lineWidth)))
	if e.File != "" {
		c.Info("this is in %s", e.File)
	}
}

// StallText returns the text of the file that an agent writes about a stall, see
// agent.Config.DescribeStall. The file of --report has it, too.
func StallText(e agent.Stalled) string {
	return fmt.Sprintf("%s\nattempt %d, --stall-timeout %v\n\n%s", stallLine(e.Stall), e.Attempt,
		e.Timeout, tables.Stacks([]stacks.Report{e.Stacks}, lineWidth))
}

// stallLine is "stalled for 15m0s (--stall-timeout): ...".
func stallLine(s rdzv.Stall) string {
	silent := s.Silent.Rounded().String()
	return strings.Replace(s.String(), silent, silent+" (--stall-timeout)", 1)
}

func indented(text string) string {
	text = "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
	return strings.ReplaceAll(text, "\n  \n", "\n\n")
}
