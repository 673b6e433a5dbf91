package envmap

import (
	"io/fs"
	"strconv"
	"strings"
)

// card is a device as the kernel shows it.
type card struct {
	index   int    // selects it in the vendor's variables; Unknown if that is not known
	uuid    string // GPU-...; "" if unknown
	address string // of the PCI device, such as 0000:1b:00.0; "" if unknown
}

// Accessible is implemented by file systems that know whether this process may open a file. Slurm
// leaves all device files visible and lets a task open only its own.
type Accessible interface{ Accessible(name string) bool }

// selectCards returns the card of each entry: a number, DEVICE.TILE, a UUID or its beginning, or a
// MIG instance whose name contains its GPU's UUID (MIG-GPU-.../1/0).
func selectCards(entries []string, from []card) []card {
	cards := make([]card, len(entries))
	for i, entry := range entries {
		number, _, _ := strings.Cut(entry, ".")
		n, err := strconv.Atoi(number)
		uuid, _, _ := strings.Cut(strings.TrimPrefix(entry, "MIG-"), "/")
		var found []card
		for _, c := range from {
			switch {
			case err == nil && c.index == n,
				err != nil && len(uuid) > len("GPU-") && hasPrefixFold(c.uuid, uuid):
				found = append(found, c)
			}
		}
		if len(found) == 1 {
			cards[i] = found[0]
		}
	}
	return cards
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// inOrder numbers cards if their order is known.
func inOrder(cards []card, known bool) []card {
	for i := range cards {
		if cards[i].index = i; !known {
			cards[i].index = Unknown
		}
	}
	return cards
}

// unknownCards are n cards of which only the number is known.
func unknownCards(n int) []card { return inOrder(make([]card, n), false) }

func accessible(root fs.FS, name string) bool {
	files, ok := root.(Accessible)
	return !ok || files.Accessible(name)
}
