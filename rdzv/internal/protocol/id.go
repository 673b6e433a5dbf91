package protocol

import "fmt"

// CheckID returns an error unless id can name an agent: 1 to 64 of the characters a to z, A to Z,
// 0 to 9, '.', '_' and '-'. Ids are used in keys and in messages.
func CheckID(id string) error {
	const most = 64
	if len(id) == 0 || len(id) > most {
		return fmt.Errorf("cannot use agent id %.64q: its length is %d, not 1 to %d bytes",
			id, len(id), most)
	}
	for _, c := range []byte(id) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '.' && c != '_' && c != '-' {
			return fmt.Errorf("cannot use agent id %q: "+
				"only letters, digits, '.', '_' and '-' are allowed", id)
		}
	}
	return nil
}
