package main

// entry is where the kernel starts this program (go tool link -E). It goes on to the entry point of
// the Go runtime, unless the limit of the address space (ulimit -v) is below 1 GiB: the runtime then
// would end with a stack trace, or an agent soon after it. [agent.CheckLimits] checks what an agent
// needs beyond that.
//
//lint:ignore U1000 the linker refers to it
func entry()
