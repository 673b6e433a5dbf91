package main

// entry is where the kernel starts this program (go tool link -E). It goes on to the entry point of
// the Go runtime, unless one of two limits is so low that the runtime would end with a stack trace,
// or an agent soon after it:
//
//   - the address space (ulimit -v), if it is below 1 GiB; [agent.CheckLimits] checks what an agent
//     needs beyond that;
//   - the user's processes and threads (ulimit -u), or those of a cgroup: as many threads as an
//     agent with its watchdog needs are started here and end at once, because nothing else tells
//     how many are left. That takes 0.5 ms, so it is done only if ulimit -u is below 16384.
//
//lint:ignore U1000 the linker refers to it
func entry()
