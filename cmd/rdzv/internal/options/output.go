package options

import (
	"errors"
	"strconv"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/rdzv/agent"
)

// Output is what the flags set that belongs to the command, and not to an agent.
type Output struct {
	Quiet, Verbose bool
	ReportFile     string
	EventFile      string
	// TemporaryLogs says that exec makes the log directory in that of the agent's configuration, the
	// one for temporary files: --redirects without --log-dir.
	TemporaryLogs bool
}

// output are the flags about what is written.
func output(c *agent.Config, own *Output) flags.Group {
	return flags.Group{Title: "Output", Rows: []flags.Row{
		flags.Flag("--tag", "begin each line of PROGRAM with its rank and host: [3 node2]", tag{c}),
		flags.Flag("--log-dir DIR", "also write the output of each rank to a file in DIR/latest, "+
			"rank-00003.log", &c.LogDir),
		flags.Flag("--show RANKS|none", "show only the output of these ranks, such as 0 or 0,4-7; "+
			"local:0 is the first rank of each node (all)", &c.Show),
		flags.Flag("--report FILE", "at the end, write to FILE how the job ended, as JSON",
			&own.ReportFile),
		flags.Flag("--events FILE", "append the events of the job to FILE, as JSON lines, on the node "+
			"that hosts the store", &own.EventFile),
		flags.Flag("--capture never", "do not read stderr of PROGRAM for the report: in a terminal, "+
			"PROGRAM keeps that terminal, as less, curses and shells need it",
			capture{c}).Of(captureNever),
		flags.Flag("-q, --quiet", "print only why the job ended", &own.Quiet),
		flags.Flag("-v, --verbose", "also print how the job starts", &own.Verbose),
	}}
}

// tag is the value of --tag. Options.Config, which knows the screen, replaces the function.
type tag struct{ *agent.Config }

func (t tag) Set(text string) error {
	given, err := strconv.ParseBool(text)
	if t.Tag = nil; given {
		t.Tag = func(int, string) string { return "" }
	}
	return err
}

func (t tag) String() string { return strconv.FormatBool(t.Tag != nil) }

func (t tag) Type() string { return "bool" }

// NoValue returns the value of the flag if it is given without one. Package flags calls it.
func (t tag) NoValue() string { return "true" }

// capture is the value of --capture: whether the stderr of PROGRAM is read for the report.
type capture struct{ *agent.Config }

const captureNever = "never"

func (m capture) Set(text string) error {
	if text != captureNever {
		return errors.New("must be never; without --capture, stderr is read in a terminal, too")
	}
	m.NoCapture = true
	return nil
}

func (m capture) String() string {
	if m.NoCapture {
		return captureNever
	}
	return ""
}

func (m capture) Type() string { return "capture" }

// noCapture is the value of --no-capture, the former name of --capture=never.
type noCapture struct{ *agent.Config }

func (n noCapture) Set(text string) error {
	switch text {
	case "true", "1":
		return capture(n).Set(captureNever)
	case "false", "0":
		return nil
	}
	return errors.New("must be true or false")
}

func (n noCapture) String() string { return "" }

func (n noCapture) Type() string { return "bool" }
