package postmortem

import (
	"cmp"
	"regexp"
	"strings"
	"sync"
)

// What is printed after the reason of a failure and is not one. The expressions are made when they
// are needed.

// advises matches what programs print after what is wrong: how they are called, where to read that,
// or a hint of rdzv.
var advises = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^rdzv: hint: |^(\S+: )?usage:|^(\S+: )?use -|` +
		`^(\S+: )?(try|see|run|type|use)\b.*(--help|-h\b|\bfor (more|usage|help))|` +
		`^for (more|usage|help)\b|^set the environment variable `)
})

// warns matches a warning of Python's module warnings, such as that of the resource tracker about
// leaked semaphores, and one of torch's C++ code, such as that destroy_process_group was not
// called.
var warns = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\S+:\d+: \w*Warning: |` + afterwards + `|` +
		`^(\[rank\d+\]:)?\[?[IW](\d{4})? .*\b\w+\.(cpp|cc|h|hpp|cu|py):\d+\] `)
})

// afterwards matches what pytest and wandb print at their end.
const afterwards = `^(=+ )?\d+ (failed|passed|errors?)\b.* in \d+\.\d+s|^!+ stopping after |` +
	`^wandb:($| \W| Find logs| You can sync| Waiting| Synced| View| Run | wandb sync)`

// saysWhy tells whether a line may be the reason: it is text, neither indented nor a remark.
func saysWhy(line string) bool {
	return line != "" && line[0] != ' ' && line[0] != '\t' && !isRule(line) && !isRemark(line)
}

func isRemark(line string) bool {
	return advises().MatchString(line) || warns().MatchString(line)
}

// ownMessage matches the row of a report of rdzv that has the message, ownLine the one line about a
// failure.
var (
	ownMessage = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^rdzv:   message  (.*\S)`)
	})
	ownLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^rdzv: (?:\S+Z )?(rank \d+ (?:of \d+ )?failed first.*)$`)
	})
	ownReason = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\(local rank \d+, pid \d+\): (.*\S)`)
	})
)

// ownRow matches a row of a report, ownRest what rdzv has written of a line on a further row of a
// terminal.
var (
	ownRow = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^rdzv:   (\w+ {2,}|its \w+ is |last lines of |\| )`)
	})
	ownRest = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^rdzv:   \S`) })
)

// unfolded are lines of which those that a nested rdzv has divided, because it writes to a
// terminal, are whole.
func unfolded(lines []string) (whole []string) {
	for _, line := range lines {
		text := printable(line)
		last := len(whole) - 1
		if last >= 0 && ownRest().MatchString(text) && !ownRow().MatchString(text) &&
			strings.HasPrefix(printable(whole[last]), "rdzv: ") {
			whole[last] += " " + strings.TrimPrefix(text, "rdzv:   ")
			continue
		}
		whole = append(whole, line)
	}
	return whole
}

// reported is the failure that a nested rdzv reports at the end of a text; "" if none does.
func reported(lines []string) string {
	lines = unfolded(lines)
	text := ""
	at := lastIndex(lines, func(line string) bool {
		text = printable(line)
		return strings.HasPrefix(text, "rdzv: ") &&
			(ownMessage().MatchString(text) || ownLine().MatchString(text))
	})
	if at < 0 {
		return ""
	}
	if m := ownMessage().FindStringSubmatch(text); m != nil {
		return m[1]
	}
	line := ownLine().FindStringSubmatch(text)[1]
	reason := ""
	if m := ownReason().FindStringSubmatch(line); m != nil {
		reason = m[1]
	}
	return withoutTime(cmp.Or(reason, line))
}

var ownTime = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^rdzv: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ `)
})

// withoutTime is a line without the time that rdzv puts before its own: a report has another one.
func withoutTime(line string) string { return ownTime().ReplaceAllString(line, "rdzv: ") }
