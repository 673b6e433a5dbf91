package meet

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Defaults of Config.PortLo and PortHi: below the range from which Linux hands out ports by itself
// (32768 and up).
const (
	DefaultPortLo = 29600
	DefaultPortHi = 29999
)

// sequenceLen is how many ports a job tries. A hundred jobs at once on one host and the default
// range leave one of them without a port in about one of 10^5 cases.
const sequenceLen = 8

// portsOf gives the n ports of lo..hi at which the store of the job with this public name may
// listen, in the order of trying: fewer if the range is smaller. Equal on all agents of the job,
// also on those with another secret, who are to be told so.
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
