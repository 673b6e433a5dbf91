package manpage

import (
	"testing"
)

// No line of text in the manual page is taken for a request.
func TestManPageRequests(t *testing.T) {
	text := roff("a\n.B no request\n'tis text\n\n    .in an example\n")
	want := "a\n\\&.B no request\n\\(aqtis text\n.PP\n.RS 4\n.nf\n\\&.in an example\n.fi\n.RE\n"
	if text != want {
		t.Errorf("roff made\n%q, want\n%q", text, want)
	}
}
