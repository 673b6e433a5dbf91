package postmortem

import (
	"slices"
	"strings"
)

// What Python prints when it fails starts with one of these: the traceback of an
// exception, and faulthandler's dump of a fatal signal.
const (
	tracebackStart = "Traceback (most recent call last):"
	fatalStart     = "Fatal Python error: "
)

// frame is how each frame of both starts.
const frame = `  File "`

// The traceback of an exception group starts with groupStart. Each of its own lines
// follows groupLine; those of the exceptions in it are indented further.
const (
	groupStart = "  + Exception Group " + tracebackStart
	groupLine  = "  | "
)

// lastTraceback returns the index of the line that starts the last traceback, or -1.
// The traceback of an exception in a group belongs to that of the group.
func lastTraceback(lines []string) int {
	last := lastIndex(lines, startsTraceback)
	group := lastIndex(lines[:last+1], startsGroup)
	if group < 0 {
		return last
	}
	indent := outerPrefix(lines[group:]) + "  "
	for _, line := range lines[group+1 : last+1] {
		if !strings.HasPrefix(line, indent) {
			return last
		}
	}
	return group
}

// abortReason returns the index of the line before the dump of abort(3) at lines[at], in which the
// library that has called it says why ("free(): invalid pointer", "  what():  no memory"); -1 if
// there is none. faulthandler only knows the signal.
func abortReason(lines []string, at int) int {
	if !strings.HasPrefix(lines[at], fatalStart+"Aborted") {
		return -1
	}
	return lastIndex(lines[:at], func(line string) bool {
		text := strings.TrimSpace(line)
		return text != "" && !strings.HasPrefix(text, "terminate called without an active exception")
	})
}

// chainStart returns the index of the first traceback of the chain that ends with
// the one at lines[at]: Python prints the cause of an exception before it.
func chainStart(lines []string, at int) int {
	for continuesChain(lines[:at]) {
		before := lastTraceback(lines[:at])
		if before < 0 {
			break
		}
		at = before
	}
	return at
}

// continuesChain reports whether the traceback after these lines belongs to the same
// chain as the one before it.
func continuesChain(before []string) bool {
	for _, line := range slices.Backward(before) {
		if strings.TrimSpace(line) != "" {
			return strings.HasPrefix(line, "During handling of the above exception") ||
				strings.HasPrefix(line, "The above exception was the direct cause")
		}
	}
	return false
}

// exceptionLine returns the line that names the exception: the first after the start
// of the traceback that is not indented. Lines without the prefix, such as those
// of another rank, are not the traceback's.
func exceptionLine(lines []string) string {
	if i := strings.Index(lines[0], fatalStart); i >= 0 {
		return lines[0][i:]
	}
	prefix := framePrefix(lines)
	for _, line := range lines[1:] {
		rest, ok := strings.CutPrefix(line, prefix)
		if ok && rest != "" && rest[0] != ' ' && rest[0] != '\t' {
			return rest
		}
	}
	return ""
}

// removePrefix removes what precedes every line of the traceback that starts at
// lines[at] from it and from all lines that share it. A line that is only the
// beginning of the prefix is empty: torch adds nothing to an empty line, mpirun does.
func removePrefix(lines []string, at int) {
	prefix := outerPrefix(lines[at:])
	for i, line := range lines {
		if strings.HasPrefix(prefix, line) {
			lines[i] = ""
		} else {
			lines[i] = strings.TrimPrefix(line, prefix)
		}
	}
	for _, start := range []string{groupStart, tracebackStart, fatalStart} { // after a progress bar
		lines[at] = strings.Replace(lines[at], prefix+start, start, 1)
	}
}

// framePrefix returns what precedes each frame of the traceback that lines[0] starts:
// "[rank2]: " from torch 2, "[1,2]<stderr>:" from an mpirun inside the worker,
// groupLine in an exception group, or several of these.
//
// The frames decide, because other text may stand before the start: a progress bar
// without a newline, or "Original " in an exception from a DataLoader's process.
func framePrefix(lines []string) string {
	before := beforeStart(lines[0])
	for _, line := range lines[1:] {
		if prefix, _, ok := strings.Cut(line, frame); ok && strings.HasPrefix(before, prefix) {
			return prefix
		}
	}
	if len(lines) > 1 {
		if prefix, _, ok := strings.Cut(lines[1], frame); ok {
			return prefix
		}
	}
	return before
}

// outerPrefix returns what precedes every line of a traceback: framePrefix without
// the part that is an exception group's own.
func outerPrefix(lines []string) string {
	prefix := framePrefix(lines)
	if startsGroup(lines[0]) {
		return strings.TrimSuffix(prefix, groupLine)
	}
	return prefix
}

// beforeStart returns what precedes the start of a traceback on its line, with
// groupLine in place of the different start of a group.
func beforeStart(line string) string {
	line = strings.Replace(line, groupStart, groupLine+tracebackStart, 1)
	for _, start := range []string{tracebackStart, fatalStart} {
		if before, _, ok := strings.Cut(line, start); ok {
			return before
		}
	}
	return ""
}

func lastIndex(lines []string, matches func(string) bool) int {
	for i, line := range slices.Backward(lines) {
		if matches(line) {
			return i
		}
	}
	return -1
}

func startsTraceback(line string) bool {
	return strings.Contains(line, tracebackStart) || strings.Contains(line, fatalStart)
}

func startsGroup(line string) bool { return strings.Contains(line, groupStart) }
