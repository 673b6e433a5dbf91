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
	if rest, isURL := strings.CutPrefix(text, "ssh://"); isURL {
		name := strings.TrimRight(rest, "/")
		if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, ']') {
			name = name[:at]
		}
		return Host{}, refusal(text, "URLs are not accepted",
			"write "+name+"; "+portHint(name[strings.LastIndexByte(name, '@')+1:]))
	}
	h, rest := Host{}, text
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		h.User, rest = text[:at], text[at+1:]
		if !plain(h.User) {
			return Host{}, refusal(text, fmt.Sprintf("%q is no user's name", h.User), "")
		}
	}
	name, number, numbered, err := splitNumber(rest)
	if err != nil {
		return Host{}, err
	}
	if !plain(name) {
		advice := ""
		if strings.ContainsAny(name, " \t") {
			advice = "hosts are separated by commas"
		}
		return Host{}, refusal(text, fmt.Sprintf("%q is no host's name", name), advice)
	}
	h.Name = name
	if numbered {
		h.Workers, err = parseWorkers(number, text, name)
	}
	return h, err
}

// splitNumber splits host[:workers]. Only an IPv6 address may have, and must have, brackets.
func splitNumber(text string) (name, number string, numbered bool, err error) {
	if inside, isAddress := strings.CutPrefix(text, "["); isAddress {
		name, rest, closed := strings.Cut(inside, "]")
		number, numbered = strings.CutPrefix(rest, ":")
		address, err := netip.ParseAddr(name)
		if !closed || err != nil || !address.Is6() || (rest != "" && !numbered) {
			return "", "", false, refusal(text, "it is no IPv6 address",
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

// parseWorkers reads the number of workers on a host.
func parseWorkers(number, text, name string) (int, error) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return 0, refusal(text, fmt.Sprintf("%q is no number of workers", number), "")
	}
	if n > maxWorkers {
		return 0, refusal(text, fmt.Sprintf("%d workers on one host are too many", n),
			"if it is a port: "+portHint(name))
	}
	return n, nil
}

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
	if strings.EqualFold(words[0], "rank") {
		return Host{}, refusal(line, "rank files are not accepted",
			"write a line \"node1 slots=4\" for each host")
	}
	h, err := parseHost(words[0])
	if err != nil {
		return Host{}, err
	}
	limit := 0
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch strings.ReplaceAll(strings.ToLower(key), "_", "-") {
		case "slots", "cpu", "count":
			if h.Workers != 0 {
				return Host{}, refusal(word, "the line has two numbers of workers", "")
			}
			h.Workers, err = parseWorkers(value, word, h.Name)
		case "max-slots", "slots-max", "max-cpu", "cpu-max", "max-count", "count-max":
			limit, err = parseWorkers(value, word, h.Name)
		case "user", "username", "user-name":
			err = h.setUser(value, word)
		case "port":
			err = refusal(word, "a host file has no ports", portHint(h.Name))
		default:
			err = refusal(word, "only slots, max-slots and user can be set for a host", "")
		}
		if err != nil {
			return Host{}, err
		}
	}
	if limit != 0 && limit < h.Workers {
		return Host{}, refusal(line, "slots is more than max-slots", "")
	}
	return h, nil
}

// setUser sets the user who logs in, once.
func (h *Host) setUser(user, word string) error {
	if h.User != "" && h.User != user {
		return refusal(word, "the line has two users", "")
	}
	if !plain(user) {
		return refusal(word, fmt.Sprintf("%q is no user's name", user), "")
	}
	h.User = user
	return nil
}

// bracketed is a host's name as --hosts takes it.
func bracketed(name string) string {
	if strings.Contains(name, ":") {
		return "[" + name + "]"
	}
	return name
}

// refusal says why a host cannot be used.
func refusal(text, cause, advice string) error {
	err := fmt.Errorf("cannot use host %q: %s", text, cause)
	if advice == "" {
		return err
	}
	return hint.With(err, advice)
}
