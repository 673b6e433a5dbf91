package options

import (
	"errors"
	"slices"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/rdzv/agent"
)

// Output are the flags about what is written.
type Output struct {
	Quiet, Verbose bool
	ReportFile     string
	EventFile      string
	// TemporaryLogs says that exec makes the log directory in that of the agent's configuration, the
	// one for temporary files: --redirects without --log-dir.
	TemporaryLogs bool

	tag     bool
	logDir  string
	show    string
	capture captureMode
}

func (o *Output) rows() []flags.Row {
	return []flags.Row{
		flags.Flag("--tag", "begin each line of PROGRAM with its rank and host: [3 node2]", &o.tag),
		flags.Flag("--log-dir DIR", "also write the output of each rank to a file in DIR/latest, "+
			"rank-00003.log", &o.logDir),
		flags.Flag("--show RANKS|none", "show only the output of these ranks, such as 0 or 0,4-7; "+
			"local:0 is the first rank of each node (all)", &o.show),
		flags.Flag("--report FILE", "at the end, write to FILE how the job ended, as JSON",
			&o.ReportFile),
		flags.Flag("--events FILE", "append the events of the job to FILE, as JSON lines, on the node "+
			"that hosts the store", &o.EventFile),
		flags.Flag("--capture[=WHEN]", "read stderr of PROGRAM for the report: auto (unless it is a "+
			"terminal), always (it is then no terminal for PROGRAM), or never (auto)",
			&o.capture).Of(captureModes()...),
		flags.Flag("-q, --quiet", "print only why the job ended", &o.Quiet),
		flags.Flag("-v, --verbose", "also print how the job starts", &o.Verbose),
	}
}

func (o *Output) check(c command) error {
	return c.exclusive(o.Quiet && o.Verbose, "quiet", "verbose")
}

func (o *Output) set(c *agent.Config) {
	c.Capture, c.NoCapture = o.capture == captureAlways, o.capture == captureNever
	c.LogDir, c.Show = o.logDir, o.show
	if o.tag {
		c.Tag = func(int, string) string { return "" } // Config knows the screen
	}
}

// captureMode is the value of --capture: whether the stderr of PROGRAM is read for the report.
type captureMode string

const (
	captureAuto   captureMode = "auto" // unless it is a terminal
	captureAlways captureMode = "always"
	captureNever  captureMode = "never"
)

// captureModes are the values of --capture. Before, it was true or false.
func captureModes() []string {
	return []string{string(captureAuto), string(captureAlways), string(captureNever)}
}

func (m *captureMode) Set(text string) error {
	switch {
	case text == "true" || text == "1":
		text = string(captureAlways)
	case text == "false" || text == "0":
		text = string(captureAuto)
	case !slices.Contains(captureModes(), text):
		return errors.New("must be auto, always or never")
	}
	*m = captureMode(text)
	return nil
}

func (m *captureMode) String() string { return string(*m) }

// Type is that of a flag, for messages about a value that cannot be read.
func (m *captureMode) Type() string { return "capture" }

// NoValue returns the value of the flag if it is given without one. Package flags calls it.
func (m *captureMode) NoValue() string { return string(captureAlways) }

// noCapture is the value of --no-capture, the former name of --capture=never.
type noCapture captureMode

func (n *noCapture) Set(text string) error {
	switch text {
	case "true", "1":
		*n = noCapture(captureNever)
	case "false", "0":
	default:
		return errors.New("must be true or false")
	}
	return nil
}

func (n *noCapture) String() string { return "" }

func (n *noCapture) Type() string { return "bool" }
