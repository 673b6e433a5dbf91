package meet

import (
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"rdzv/internal/procfs"
	"rdzv/rdzv/meet/internal/hosts"
)

// openMPINodes returns the nodes with ranks, nil if they are not known: mpirun's host is in the
// list also if it has none. Ranks on mpirun's host find the list only in the command lines by which
// mpirun starts its daemons on the other hosts.
func openMPINodes(env map[string]string, proc fs.FS, pid int) []string {
	text := env["OMPI_MCA_orte_node_regex"]
	for _, p := range procfs.Ancestors(proc, pid) {
		children, _ := procfs.Children(proc, p.PID)
		for _, child := range children {
			command := strings.Join(procfs.Arguments(proc, child), " ")
			if _, after, found := strings.Cut(command, " orte_node_regex "); found && text == "" {
				text, _, _ = strings.Cut(after, " ")
			}
		}
	}
	nodes, err := hosts.ParseNodeRegex(strings.Trim(text, `"'`))
	if err != nil || strconv.Itoa(len(nodes)) != env["OMPI_MCA_orte_num_nodes"] {
		return nil
	}
	return nodes
}

// openMPIHead returns the addresses of mpirun's daemon from the command line of this host's daemon,
// which is an ancestor of this process; nil if they are not found.
func openMPIHead(proc fs.FS, pid int) []netip.AddrPort {
	if proc == nil {
		return nil
	}
	for _, p := range procfs.Ancestors(proc, pid) {
		args := procfs.Arguments(proc, p.PID)
		if len(args) == 0 || !slices.Contains([]string{"prted", "prte"}, path.Base(args[0])) {
			continue
		}
		if i := slices.Index(args, "prte_hnp_uri"); i >= 0 && i+1 < len(args) {
			hnp, _ := hosts.ParseDaemonURI(args[i+1])
			return hnp
		}
	}
	return nil
}
