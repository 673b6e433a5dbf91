package wrap

import (
	"maps"
	"slices"

	"rdzv/internal/procfs"
	"rdzv/wrap/internal/watchdog"
)

// Remaining lists the processes of all trees of this process whose parents have ended, and the
// workers that run. It is for messages: processes may start and end meanwhile.
func Remaining() (list []Process) {
	guards.Lock()
	watchdogs := slices.Sorted(maps.Values(guards.watchdogs))
	guards.Unlock()
	for _, pid := range watchdogs {
		pids, _ := procfs.Children(procfs.System, pid) // a watchdog that has ended has none
		list = append(list, named(pids)...)
	}
	const zombie = 'Z'
	return slices.DeleteFunc(list, func(p Process) bool {
		stat, err := procfs.Read(procfs.System, p.PID)
		return err != nil || stat.State == zombie || p.Name == watchdog.SentinelName
	})
}
