package integration

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"time"
)

// lineReader splits a stream into lines.
type lineReader struct {
	to   *process
	rest []byte
}

func (r *lineReader) Write(text []byte) (int, error) {
	r.rest = append(r.rest, text...)
	for {
		line, rest, found := bytes.Cut(r.rest, []byte("\n"))
		if !found {
			return len(text), nil
		}
		r.to.add(strings.TrimRight(string(line), "\r")) // the ranks of mpirun have a terminal
		r.rest = rest
	}
}

// timeOfLine begins what rdzv writes about a running job.
var timeOfLine = regexp.MustCompile(`rdzv: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ `)

// add adds a line, without its time.
func (c *process) add(line string) {
	line = timeOfLine.ReplaceAllLiteralString(line, "rdzv: ")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
	close(c.changed)
	c.changed = make(chan struct{})
}

// output returns the lines so far, and a channel that is closed when there are more.
func (c *process) output() ([]string, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines), c.changed
}

// linesWith returns the lines so far that contain all the texts.
func (c *process) linesWith(texts ...string) []string {
	lines, _ := c.output()
	return slices.DeleteFunc(lines, func(line string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
	})
}

// waitFor waits for a line that contains the text, and fails the test if there is none.
func (c *process) waitFor(text string) {
	c.t.Helper()
	deadline := time.After(waitLimit)
	for {
		_, changed := c.output()
		if len(c.linesWith(text)) > 0 {
			return
		}
		select {
		case <-changed:
		case <-c.done:
			if len(c.linesWith(text)) == 0 {
				c.t.Fatalf("%q ended without printing %q", c.argv, text)
			}
			return
		case <-deadline:
			c.t.Fatalf("%q has not printed %q within %v", c.argv, text, waitLimit)
		}
	}
}

// logOutput logs the last lines of the process.
func (c *process) logOutput() {
	const last = 40
	lines, _ := c.output()
	cut := max(0, len(lines)-last)
	c.t.Logf("%q (%v), its last lines:\n    %s",
		c.argv, c.cmd.ProcessState, strings.Join(lines[cut:], "\n    "))
}
