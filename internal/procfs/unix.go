package procfs

import (
	"bytes"
	"io/fs"
	"strconv"
)

// UnixListeners lists the abstract Unix addresses that begin with prefix and at which a process
// listens, in the network namespace of this process (/proc/net/unix). prefix begins with "@".
func UnixListeners(proc fs.FS, prefix string) ([]string, error) {
	text, err := fs.ReadFile(proc, "self/net/unix")
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range bytes.Lines(text) {
		// Num RefCount Protocol Flags Type St Inode Path
		fields := bytes.Fields(line)
		if len(fields) < 8 || !bytes.HasPrefix(fields[7], []byte(prefix)) {
			continue
		}
		const listens = 1 << 16 // __SO_ACCEPTCON; accepted connections have the name too
		flags, err := strconv.ParseUint(string(fields[3]), 16, 64)
		if err == nil && flags&listens != 0 {
			names = append(names, string(fields[7]))
		}
	}
	return names, nil
}
