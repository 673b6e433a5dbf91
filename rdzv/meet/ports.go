package meet

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Default values of Config.PortLo and Config.PortHi. They are below Linux's ephemeral port range,
// which begins at 32768.
const (
	DefaultPortLo = 29600
	DefaultPortHi = 29999
)

// sequenceLen is the length of a job's port sequence. With a hundred simultaneous jobs on one host
// and the default range, the probability that one of them finds no free port is about 10^-5.
const sequenceLen = 8

// portsOf returns the first n ports of the port sequence of the job with that public name, within
// lo to hi; fewer if the range is smaller. It is the same on all agents of the job, also on those
// with a different secret, so that they find each other and report that.
func portsOf(public []byte, lo, hi, n int) []int {
	n = max(0, min(n, hi-lo+1))
	ports := make([]int, 0, n)
	for i := uint64(0); len(ports) < n; i++ {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(slices.Clone(public), i))
		port := lo + int(binary.BigEndian.Uint64(sum[:])%uint64(hi-lo+1))
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}
