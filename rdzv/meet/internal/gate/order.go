package gate

import (
	"encoding/binary"
	"strings"
)

// OrderOf returns the order of an agent among those that may host: that of its node rank, if it
// has one, and then the natural order of the names of hosts, in which a number counts as one
// character: node2 is before node10. Names that are longer than an Order and begin alike are equal.
func OrderOf(nodeRank int, host string) (o Order) {
	binary.BigEndian.PutUint32(o[:], uint32(nodeRank)) // -1 is the last one
	copy(o[4:], sortable(host))
	return o
}

// sortable returns a text whose order as bytes is the natural order of the name.
func sortable(name string) string {
	var b strings.Builder
	for name != "" {
		digits := len(name) - len(strings.TrimLeft(name, "0123456789"))
		if digits == 0 {
			b.WriteByte(name[0])
			name = name[1:]
			continue
		}
		number := strings.TrimLeft(name[:digits], "0")
		b.WriteByte('0') // as a number is compared with any other character
		b.WriteByte(byte(len(number)))
		b.WriteString(number)
		name = name[digits:]
	}
	return b.String()
}
