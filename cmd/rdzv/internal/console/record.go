package console

import "time"

// Record is what one call of a console writes, for a console of another process.
type Record struct {
	Kind   RecordKind
	Text   string
	Waited time.Duration // of a status
}

// RecordKind says how it is written.
type RecordKind string

const (
	asError   RecordKind = "error"
	asLine    RecordKind = "line"
	asHint    RecordKind = "hint"
	asCommand RecordKind = "command"
	asStatus  RecordKind = "status"
	endStatus RecordKind = "end status"
)

// lead is what the lines of this kind begin with.
func (k RecordKind) lead() lead {
	switch k {
	case asError:
		return lead{colour: Red, label: "rdzv:"}
	case asLine:
		return lead{label: "rdzv:"}
	case asHint:
		return lead{before: "rdzv: ", colour: Magenta, label: "hint:"}
	}
	return lead{}
}

// PassingTo returns a console that passes on what would be written to it. Where the other one leads
// is of this kind.
func PassingTo(to func(Record), kind Kind) *Console {
	return &Console{pass: to, to: Destination{kind: kind}}
}

// Show writes what another console has passed on.
func (c *Console) Show(r Record) {
	switch r.Kind {
	case asStatus:
		c.Status(r.Text, r.Waited)
	case endStatus:
		c.EndStatus()
	case asError, asLine:
		c.write(r.Kind, c.at(), r.Text)
	case asHint:
		c.HintOnce(r.Text)
	case asCommand:
		c.write(r.Kind, "", r.Text)
	}
}

// IsStatus tells whether it replaces, or removes, what is being waited for.
func (r Record) IsStatus() bool { return r.Kind == asStatus || r.Kind == endStatus }

// Kind is what the console writes to.
func (c *Console) Kind() Kind { return c.to.kind }
