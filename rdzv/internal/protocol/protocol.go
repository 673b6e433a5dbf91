// Package protocol has the version of what agents say to each other: the lines before the store's
// own protocol, the beacons, and the values in the store. Agents of different versions refuse each
// other, and both say so. What they need for that is the same in all versions:
//
//   - the first word of every line and beacon, [Magic] with the sender's version
//   - the places of a beacon's public name, host and MAC
//   - the key that is derived from a token, and that of --insecure, and the entries in the first
//     message of TLS
//   - the key of a job's run in a store that no agent hosts, and the id in its value
package protocol

import (
	"fmt"
	"strconv"
	"strings"
)

// word is the first word of every line and beacon, followed by the version.
const word = "rdzv"

// Magic is the first word of the lines and beacons of this version.
var Magic = word + strconv.Itoa(Version)

// VersionOf returns the version in the first word of a line or beacon; 0 if that is not from rdzv.
func VersionOf(magic string) int {
	digits, ok := strings.CutPrefix(magic, word)
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || digits != strconv.Itoa(n) {
		return 0
	}
	return n
}

// A VersionError says that the other side has another version.
type VersionError struct {
	Other int
	// Shared says that the other side is a shared store and not an agent.
	Shared bool
}

func (e *VersionError) Error() string { return Difference(e.Other) }

// Difference says how another version differs from this one.
func Difference(other int) string {
	return fmt.Sprintf("has another version of rdzv (protocol %d; this one has protocol %d)",
		other, Version)
}

// Advice is the suggestion for users whose agents have different versions.
const Advice = "use the same release of rdzv on all nodes: rdzv version prints it"
