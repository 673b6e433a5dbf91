package postmortem

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// What a program prints when it fails starts with one of these: the traceback of an exception,
// faulthandler's dump of a fatal signal, and what C++ says of an exception that nobody caught.
const (
	tracebackStart = "Traceback (most recent call last):"
	fatalStart     = "Fatal Python error: "
	terminateStart = "terminate called after throwing an instance of "
)

var starts = []string{tracebackStart, fatalStart, terminateStart}

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

// decisive returns the index of the line that starts the last traceback of what ended the program,
// or -1 if there is none, and where what it has printed of that ends. Python also prints tracebacks
// of what it ignores, or of other threads and processes, often while it ends because of an
// exception: they count only if there is no other one. A signal that ends a program while it ends
// because of an exception counts less than that, too.
func decisive(lines []string) (at, end int) {
	at, end = lastTraceback(lines), len(lines)
	first := at
	for at >= 0 {
		marker := asideMarker(lines[:chainStart(lines, at)])
		if marker < 0 {
			break
		}
		at, end = lastTraceback(lines[:marker]), marker
	}
	if at < 0 {
		return first, len(lines)
	}
	if !startsDeath(lines[at]) {
		if !reportsProcess().MatchString(exceptionLine(lines[at:])) {
			return at, end
		}
		before, endBefore := decisive(lines[:at])
		if before < 0 || startsDeath(lines[before]) || !near(lines[:at], before) {
			return at, end
		}
		return before, endBefore
	}
	switch before, endBefore := decisive(lines[:at]); {
	case before < 0 || !near(lines[:at], before):
	case startsTerminate(lines[before]):
		at = before // what follows is where Python was
	case !startsDeath(lines[before]):
		at, end = before, endBefore
	}
	return at, end
}

// asideMarker returns the index of the line that says, just before a traceback, that its exception
// does not end the program; -1 if none does.
func asideMarker(before []string) int {
	for n := 0; n < 2; n++ { // there may be one line more about a task of asyncio
		at := lastIndex(before, func(line string) bool { return strings.TrimSpace(line) != "" })
		if at < 0 || isAside().MatchString(before[at]) {
			return at
		}
		before = before[:at]
	}
	return -1
}

// isAside matches such a line.
var isAside = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`Exception ignored in|--- Logging error ---|Exception in thread |` +
		`\bProcess \S+:\r?$|xception was never retrieved|Exception in callback |Error in atexit`)
})

// reportsProcess matches the exception of a launcher in Python that says only that a process has
// failed, whose own traceback is above: of torchrun and of accelerate.
var reportsProcess = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\w+\.)*(ChildFailedError|CalledProcessError):`)
})

// mostAfter is how many lines of text there may be after an exception if what follows is still
// its consequence: notes, further lines of its message, or what other threads print meanwhile.
const mostAfter = 5

// near tells whether little follows the traceback that starts at lines[at].
func near(lines []string, at int) bool {
	prefix := outerPrefix(lines[at:])
	exception := exceptionLine(lines[at:])
	after := 0
	for _, line := range slices.Backward(lines[at:]) {
		line = strings.TrimPrefix(line, prefix)
		if startsTraceback(line) || exception != "" && strings.HasSuffix(line, exception) {
			break
		}
		if text := printable(line); saysWhy(text) && !isCppFrame(text) {
			after++
		}
	}
	return after <= mostAfter
}

// isCppFrame tells whether a line is of the stack that the text of an exception of torch has.
func isCppFrame(line string) bool {
	return strings.HasPrefix(line, "frame #") || strings.HasPrefix(line, "Exception raised from ")
}

// tracebackOf returns the index of the line that starts the last traceback of this exception, or
// -1.
func tracebackOf(lines []string, exception string) (at int) {
	for at = lastTraceback(lines); at >= 0; at = lastTraceback(lines[:at]) {
		if exceptionText(lines[at:]) == exception {
			break
		}
	}
	return at
}

// abortReason returns the index of the line before the dump of abort(3) at lines[at], in which the
// library that has called it says why ("free(): invalid pointer"); -1 if there is none, as after a
// progress bar. faulthandler only knows the signal.
func abortReason(lines []string, at int) int {
	if !strings.HasPrefix(lines[at], fatalStart+"Aborted") {
		return -1
	}
	before := lastIndex(lines[:at], func(line string) bool { return strings.TrimSpace(line) != "" })
	if before < 0 || !saysAbort().MatchString(lines[before]) {
		return -1
	}
	return before
}

// saysAbort matches why a library calls abort(3): glibc ("corrupted size vs. prev_size", "*** stack
// smashing detected ***: terminated"), assert(3), checks of C++ code, std::terminate.
var saysAbort = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(error|fail|fatal|invalid|corrupt|detected|assert|abort|` +
		`terminat|exception|cannot|could not|unable|out of memory|panic)`)
})

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
	if startsTerminate(lines[0]) {
		return whatCppSays(lines)
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

// exceptionText is exceptionLine, with the place of a syntax error, and, if it ends with a colon,
// the next line that says something:
// "RuntimeError: Error(s) in loading state_dict for Net: Missing key(s) in state_dict: "fc.bias"."
func exceptionText(lines []string) string {
	exception := exceptionLine(lines)
	text := strings.TrimSpace(printable(exception))
	at := slices.IndexFunc(lines, func(line string) bool {
		return strings.HasSuffix(line, exception)
	})
	if at < 0 {
		return text
	}
	if !strings.HasSuffix(text, ":") {
		return withPlace(text, lines[:at])
	}
	prefix := framePrefix(lines)
	for _, line := range lines[at+1:] {
		rest, ok := strings.CutPrefix(line, prefix)
		rest = strings.TrimSpace(printable(rest))
		switch {
		case strings.HasPrefix(prefix, line): // torch adds nothing to an empty line
		case !ok || startsTraceback(line):
			return text
		case rest != "" && !isRule(rest):
			return text + " " + rest
		}
	}
	return text
}

// isSyntaxError matches the line of an exception of which Python prints before it where it is.
var isSyntaxError = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(SyntaxError|IndentationError|TabError): `)
})

// syntaxPlace matches the line that says where: a frame without a function.
var syntaxPlace = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`  File "([^"]+)", line (\d+)\r?$`)
})

// withPlace is the line of an exception after these lines. If it is a syntax error it says where,
// as str() of it does: "SyntaxError: invalid syntax (train.py, line 3)".
func withPlace(exception string, before []string) string {
	if !isSyntaxError().MatchString(exception) {
		return exception
	}
	const most = 3 // that line, the source, and the mark below it
	for _, line := range slices.Backward(before[max(0, len(before)-most):]) {
		m := syntaxPlace().FindStringSubmatch(printable(line))
		switch {
		case m == nil:
		case strings.Contains(exception, path.Base(m[1])): // as that about the encoding of a file
			return exception
		default:
			return exception + " (" + path.Base(m[1]) + ", line " + m[2] + ")"
		}
	}
	return exception
}

// whatCppSays is the text of the exception that terminates a C++ program, else its type.
func whatCppSays(lines []string) string {
	for _, line := range lines[1:min(3, len(lines))] {
		if _, what, ok := strings.Cut(line, "  what():  "); ok && strings.TrimSpace(what) != "" {
			return what
		}
	}
	return lines[0][strings.Index(lines[0], terminateStart):]
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
	for _, start := range append([]string{groupStart}, starts...) { // after a progress bar
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
	for _, start := range starts {
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
	return strings.Contains(line, tracebackStart) || startsDeath(line)
}

// startsDeath tells whether a line starts what is printed when a signal ends the program.
func startsDeath(line string) bool {
	return strings.Contains(line, fatalStart) || startsTerminate(line)
}

func startsTerminate(line string) bool { return strings.Contains(line, terminateStart) }

func startsGroup(line string) bool { return strings.Contains(line, groupStart) }
