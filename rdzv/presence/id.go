package presence

import "fmt"

// maxID is the longest id of an agent, in bytes.
const maxID = 64

// CheckID tells whether id can name an agent: 1 to 64 of the characters a to z,
// A to Z, 0 to 9, '.', '_' and '-'. An id stands in keys and in messages.
func CheckID(id string) error {
	if len(id) == 0 || len(id) > maxID {
		return fmt.Errorf("cannot name an agent %.64q: an id has 1 to %d bytes, this one %d", id, maxID, len(id))
	}
	for _, c := range []byte(id) {
		if !nameable(c) {
			return fmt.Errorf("cannot name an agent %q: an id has letters, digits, '.', '_' and '-' only", id)
		}
	}
	return nil
}

func nameable(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}
