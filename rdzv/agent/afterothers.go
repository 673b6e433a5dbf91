package agent

import "time"

// stopCost is the processor time that one agent of a node, its watchdog and its worker need for the worker to be gone once
// the job has ended: 64 of them are gone after 28 ms on two cores (docs/performance.md), which is 0.9 ms each.
const stopCost = time.Millisecond

// longestAfter bounds what the end of a job takes longer for it.
const longestAfter = 50 * time.Millisecond

// afterOthers is how long an agent whose workers have ended with the job leaves the processors to the other agents of its
// node, which may not have stopped theirs yet. What it has to do then is to say how they ended. That costs as much, and
// nobody is in a hurry for it: 64 agents on two cores that say it at once make the last worker's end twice as late.
//
// It is a matter of time and not of priorities: under Hydra each agent has a session of its own, and Linux shares the
// processors out between sessions (sched_autogroup_enabled), whatever the niceness of their processes.
func afterOthers(agents, cores int) time.Duration {
	return min(time.Duration(agents-1)*stopCost/time.Duration(cores), longestAfter)
}
