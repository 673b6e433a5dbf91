// Package agent runs one agent of a job as a library: it determines where this process is
// ([Plan]), meets the other agents, agrees on a world with them, runs this agent's workers under
// supervision, and ends with the job ([Run]). "rdzv exec" is this package behind a command line.
//
// What happens is reported as events ([Event]); how the job ended is returned ([Result]). The
// package reads no flags and no environment of its own, writes nothing to standard error and does
// not exit the process: everything comes with [Config].
//
// It belongs here if it is a step on the way from a placement to a result. What is true of any
// etcd client is in package rdzv, finding the store in package meet, processes in package wrap,
// variables in package envmap; sentences for people are the caller's (except those of errors).
//
// # Effects on the process
//
// Run affects the whole process, so that there can be one Run at a time:
//
//   - it catches SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGTSTP
//     and SIGPIPE, and acts on them as "rdzv exec" does, until it returns;
//   - the process becomes a subreaper (prctl(2), PR_SET_CHILD_SUBREAPER) for good, and orphaned
//     descendants of workers become its children;
//   - it executes this process's own program again as the watchdog of the workers, under
//     mpiexec.hydra also as a keeper: their init functions take over before main is reached;
//   - one directory, rdzv-UID, is created in the runtime or temporary directory.
package agent
