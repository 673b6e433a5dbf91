package restart

import (
	"regexp"
	"slices"
	"strconv"
)

const (
	// pointers, and addresses of the network with or without a port.
	address = `0[xX][0-9a-fA-F]+|` +
		`\[[0-9a-fA-F:.%\w]*:[0-9a-fA-F:.%\w]*\](:\d+)?|\d+\.\d+\.\d+\.\d+(:\d+)?`
	// the number of a port, a process or a rank, with the word before it.
	counted = `(?i)\b(port|pid|process|rank|thread)(\W{0,3})\d+`
	number  = `\d+`
)

// Essence is message without what differs from attempt to attempt although the failure is the same:
// addresses, and the numbers of ranks, processes and ports, above all those of the worker that
// failed.
//
// It compiles the expressions each time, which is once per failure: package variables would be
// initialised in each process of rdzv.
func Essence(message string, own ...int) string {
	message = regexp.MustCompile(address).ReplaceAllString(message, "ADDRESS")
	message = regexp.MustCompile(counted).ReplaceAllString(message, "$1${2}N")
	return regexp.MustCompile(number).ReplaceAllStringFunc(message, func(digits string) string {
		if n, err := strconv.Atoi(digits); err == nil && slices.Contains(own, n) {
			return "N"
		}
		return digits
	})
}
