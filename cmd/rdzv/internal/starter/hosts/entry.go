package hosts

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"rdzv/internal/hint"
)

// maxWorkers is more workers than a host has, but less than most ports.
const maxWorkers = 1023

// parseHost reads [user@]host[:workers].
func parseHost(text string) (Host, error) {
	h, rest := Host{}, text
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		h.User, rest = text[:at], text[at+1:]
		if !plain(h.User) {
			return Host{}, refusal(text, notAUser(h.User), "")
		}
	}
	name, number, numbered, err := splitNumber(rest)
	if err != nil {
		return Host{}, err
	}
	if !plain(name) {
		return Host{}, refusal(text, fmt.Sprintf("%q is not a host name", name), nameHint(name))
	}
	h.Name = name
	if numbered {
		var cause, advice string
		if h.Workers, cause, advice = parseWorkers(number, name); cause != "" {
			return Host{}, refusal(text, cause, advice)
		}
	}
	return h, nil
}

// splitNumber splits host[:workers]. Only an IPv6 address may have, and must have, brackets.
func splitNumber(text string) (name, number string, numbered bool, err error) {
	if inside, isAddress := strings.CutPrefix(text, "["); isAddress {
		name, rest, closed := strings.Cut(inside, "]")
		number, numbered = strings.CutPrefix(rest, ":")
		address, err := netip.ParseAddr(name)
		if !closed || err != nil || !address.Is6() || (rest != "" && !numbered) {
			return "", "", false, refusal(text, "it is not an IPv6 address",
				"an address and 8 workers are written as [fd77::1]:8")
		}
		return name, number, numbered, nil
	}
	name, number, numbered = strings.Cut(text, ":")
	if !strings.Contains(number, ":") {
		return name, number, numbered, nil
	}
	if _, err := netip.ParseAddr(text); err == nil {
		return "", "", false, refusal(text, "an IPv6 address needs brackets",
			"["+text+"], or with 8 workers ["+text+"]:8")
	}
	return "", "", false, refusal(text, "it has more than one colon",
		"host:8 has 8 workers; "+portHint(name))
}

// parseWorkers reads the number of workers on a host. If it cannot be used, the cause says why;
// otherwise that is "".
func parseWorkers(number, name string) (n int, cause, advice string) {
	n, err := strconv.Atoi(number)
	switch {
	case number == "":
		return 0, "the number of workers is missing", ""
	case err != nil:
		return 0, fmt.Sprintf("%q is not a number of workers", number), ""
	case n < 1:
		return 0, "a host has at least one worker", ""
	case n > maxWorkers:
		return 0, fmt.Sprintf("%d workers on one host are too many", n),
			"if it is a port: " + portHint(name)
	}
	return n, "", ""
}

// nameHint says how what cannot be a name is written; "" if nothing is known about it.
func nameHint(name string) string {
	switch {
	case strings.Contains(name, "["):
		return "ranges are not expanded: --hosts node1,node2"
	case strings.Contains(name, "/"):
		return "a file with hosts is given with --hostfile"
	}
	return ""
}

func notAUser(name string) string { return fmt.Sprintf("%q is not a user name", name) }

// portHint says where ssh's ports are set.
func portHint(name string) string {
	return fmt.Sprintf("a port is set in ~/.ssh/config: a line \"Host %s\" and a line \"Port 2222\"",
		name)
}

// plain tells whether a name of a user or host can be given to ssh. It refuses what ssh would take
// for a flag, and what ssh refuses because a shell would understand it.
func plain(name string) bool {
	if name == "" || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "+") {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return strings.ContainsRune("'`\"$\\;&<>|(){}[]^*?!#,=/", r) ||
			unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
}

// parseLine reads a line of a host file: a host and settings. Open MPI's are slots=4 (or cpu,
// count), max-slots=4 (or max_slots, slots-max, ...) and username=joe; MPICH's is user=joe.
func parseLine(line string) (Host, error) {
	line = strings.Join(strings.Fields(strings.ReplaceAll(line, "=", " = ")), " ")
	words := strings.Split(strings.ReplaceAll(line, " = ", "="), " ")
	h, err := parseHost(words[0])
	if err != nil {
		return Host{}, err
	}
	limit := 0
	for _, word := range words[1:] {
		var cause, advice string
		key, value, _ := strings.Cut(word, "=")
		switch strings.ReplaceAll(strings.ToLower(key), "_", "-") {
		case "slots", "cpu", "count":
			if h.Workers != 0 {
				cause = "the line has two numbers of workers"
				break
			}
			h.Workers, cause, advice = parseWorkers(value, h.Name)
		case "max-slots", "slots-max", "max-cpu", "cpu-max", "max-count", "count-max":
			limit, cause, advice = parseWorkers(value, h.Name)
		case "user", "username", "user-name":
			cause = h.setUser(value)
		case "port":
			cause, advice = "a host file has no ports", portHint(h.Name)
		default:
			cause = "only slots, max-slots and user can be set for a host"
		}
		if cause != "" {
			return Host{}, refused(fmt.Sprintf("%q for host %q", word, h.Name), cause, advice)
		}
	}
	if limit != 0 && limit < h.Workers {
		return Host{}, refusal(line, "slots is more than max-slots", "")
	}
	return h, nil
}

// setUser sets the user who logs in, once. The cause says why it cannot; "" if it can.
func (h *Host) setUser(user string) (cause string) {
	if h.User != "" && h.User != user {
		return "the line has two users"
	}
	if !plain(user) {
		return notAUser(user)
	}
	h.User = user
	return ""
}

// bracketed is a host's name as --hosts takes it.
func bracketed(name string) string {
	if strings.Contains(name, ":") {
		return "[" + name + "]"
	}
	return name
}

// refusal says why a host cannot be used.
func refusal(host, cause, advice string) error {
	return refused(fmt.Sprintf("host %q", host), cause, advice)
}

func refused(what, cause, advice string) error {
	err := fmt.Errorf("cannot use %s: %s", what, cause)
	if advice == "" {
		return err
	}
	return hint.With(err, advice)
}
