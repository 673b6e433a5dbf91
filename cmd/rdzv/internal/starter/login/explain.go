package login

import (
	"slices"
	"strings"

	"rdzv/cmd/rdzv/internal/starter/hosts"
)

// known are ssh's words for what can go wrong, most specific first, and what to do about it. HOST
// is replaced by the host.
var known = []struct {
	words   string
	advice  string
	refused bool // the login was closed before authentication
}{
	{"REMOTE HOST IDENTIFICATION HAS CHANGED",
		"its key has changed; if you know why: ssh-keygen -R HOST, then ssh HOST", false},
	{"Host key verification failed", "ssh HOST, once, and compare its key", false},
	{"Permission denied", "ssh-copy-id HOST", false},
	{"Too many authentication failures",
		"name its key in ~/.ssh/config: IdentityFile, and IdentitiesOnly yes", false},
	{"Could not resolve hostname", "is HOST its name, or an alias in ~/.ssh/config?", false},
	{"Connection refused", "does sshd run on HOST? Another port is set in ~/.ssh/config", false},
	{"No route to host", "is HOST on?", false},
	{"Name or service not known", "is HOST its name, for its jump host too?", false},
	{"Network is unreachable", "is HOST on?", false},
	{"not responding", "does HOST still answer? ssh HOST uptime", false},
	{"timed out", "is HOST on, and does no firewall close its port 22?", false},
	{"kex_exchange_identification", manyLogins, true},
	{"ssh_exchange_identification", manyLogins, true},
	{"banner exchange", manyLogins, true},
	{"MaxStartups", manyLogins, true},
	{"Connection closed by", manyLogins, true},
	{"Connection reset by", manyLogins, true},
	{"stdio forwarding failed", manyLogins, true},
}

const manyLogins = "its sshd or its jump host's may permit too few logins at a time: MaxStartups"

// explain is the failure of a login about which ssh says something that is known.
func explain(h hosts.Host, text string) *Failure {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, row := range known {
		for i := len(lines) - 1; i >= 0; i-- {
			if !strings.Contains(lines[i], row.words) {
				continue
			}
			cause := lines[i]
			if strings.HasPrefix(cause, "@") { // a frame around it
				cause = lastLine(text)
			}
			cause = sshWords(cause)
			if before := otherWords(lines); row.refused && before != "" {
				cause = before + "; " + cause
			}
			f := newFailure(h, cause, row.advice)
			f.refused = row.refused
			return f
		}
	}
	return nil
}

// otherWords is the last line that does not say that the login was closed: the ssh to a jump host
// may have printed the reason.
func otherWords(lines []string) string {
	for _, line := range slices.Backward(lines) {
		closed := false
		for _, row := range known {
			closed = closed || row.refused && strings.Contains(line, row.words)
		}
		if !closed {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// sshWords is a line of ssh without its name, or the user and host, which the message has already.
func sshWords(line string) string {
	line = strings.TrimSuffix(strings.TrimPrefix(line, "ssh: "), ".")
	if who, what, found := strings.Cut(line, ": "); found && strings.Contains(who, "@") &&
		!strings.Contains(who, " ") {
		line = what
	}
	return line
}
