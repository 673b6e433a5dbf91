package tables

import (
	"rdzv/cmd/rdzv/internal/console"
)

// The marks of each table. A table is made without colours, because they would count in the widths
// of its columns.
var (
	CheckMarks = []console.Mark{
		mark(`(?m)^(!) `, console.Red), mark(`(?m)^(\*) `, console.Magenta),
		mark(`(?m)^(error:|not ok:)`, console.Red),
		mark(`(?m)^(warning:|    hint:)`, console.Magenta),
		mark(`(?m)^(ok)[:,] `, console.Green),
	}
	StatusMarks = []console.Mark{
		mark(` (blocked|stopped|no answer|SIG[A-Z0-9]+|exit [1-9]\d*) `, console.Red),
		mark(`(?m)^(ranks? [0-9].*)$`, console.Magenta),
	}
	StacksMarks = []console.Mark{mark(`(?m)^job [^:]*: (ranks? .* not where .*)$`, console.Magenta)}
)

func mark(part, colour string) console.Mark { return console.Mark{Part: part, Colour: colour} }
