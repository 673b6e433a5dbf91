package wrap

import (
	"maps"
	"slices"

	"rdzv/internal/procfs"
)

// Remaining lists the processes of all trees of this process whose parents have ended, and the
// workers that run. It is for messages: processes may start and end meanwhile.
func Remaining() (list []Process) {
	holders.Lock()
	parents := slices.Sorted(maps.Keys(holders.pids))
	holders.Unlock()
	for _, pid := range parents {
		pids, _ := procfs.Children(procfs.System, pid) // a holder that has ended has none
		list = append(list, named(pids)...)
	}
	const zombie = 'Z'
	return slices.DeleteFunc(list, func(p Process) bool {
		stat, err := procfs.Read(procfs.System, p.PID)
		return err != nil || stat.State == zombie
	})
}
