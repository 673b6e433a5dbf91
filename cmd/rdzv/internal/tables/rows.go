package tables

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"rdzv/cmd/rdzv/internal/visible"
	"rdzv/internal/jsontext"
)

// Row is one line of a table: what, its value, and where the value comes from.
type Row struct {
	What  string `json:"what"`
	Value string `json:"value"`
	From  string `json:"from,omitempty"` // a variable with its value, or a reason
}

// longValue is the length from which on a value has its source on the next line.
const longValue = 24

// Rows lays rows out in columns.
func Rows(rows []Row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		what, value, from := visible.Line(r.What), visible.Line(r.Value), visible.Line(r.From)
		switch {
		case value == "" || from == "":
			fmt.Fprintf(w, "%s\t%s\n", what, value+from)
		case utf8.RuneCountInString(value) >= longValue:
			fmt.Fprintf(w, "%s\t%s\n\t  %s\n", what, value, from)
		default:
			fmt.Fprintf(w, "%s\t%s\t%s\n", what, value, from)
		}
	}
	w.Flush() // a strings.Builder does not fail
	return b.String()
}

// JSON is a value that consists of texts and numbers, for people and programs.
func JSON(v any) []byte {
	b, _ := jsontext.Indent(v) // cannot fail
	return b
}
