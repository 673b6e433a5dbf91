// Package agent runs one agent of a job as a library: it determines where this process is
// ([Plan]), meets the other agents, agrees on a world with them, runs this agent's workers under
// supervision, and ends with the job ([Run]). "rdzv exec" is this package behind a command line.
//
// What happens is reported as events ([Event]); how the job ended is returned ([Result],
// [ExitCode]). The package reads no flags and no environment of its own, writes nothing to standard
// error and does not exit the process: everything comes with [Config]. docs/embedding.md has
// examples.
//
// It belongs here if it is a step on the way from a placement to a result. What is true of any
// etcd client is in package rdzv, finding the store in package meet, processes in package wrap,
// variables in package envmap; sentences for people are the caller's (except those of errors).
//
// # Effects on the process
//
// [Run] affects the whole process, so that there can be one Run at a time ([ErrRunning]).
//
// Until it returns:
//
//   - It catches SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH and SIGPIPE,
//     and acts on them as "rdzv exec" does; those that were ignored stay so, except SIGPIPE. While
//     workers run it catches SIGTSTP, SIGTTIN and SIGTTOU too, and stops this process (SIGSTOP)
//     when a terminal has stopped all workers. Channels that the caller has given to
//     [os/signal.Notify] get these signals as well.
//   - It executes this program once more, as the process tree-runner, before package main is
//     initialised: what packages do that are initialised before package wrap, they do there too.
//   - The workers are in this process's session, and in the foreground of a terminal in its process
//     group, and they are killed when this process ends, by whatever way.
//   - It listens at an abstract Unix address, where other processes of the same user can ask what
//     the ranks of the job are doing (package inspect); not with [Config.Check].
//   - If the runner is killed, Run kills all children that this process has got since Run began.
//   - If etcd cannot go on, above all because the disk is full, it ends this process by a panic,
//     see [Config.StoreFailed].
//
// For good:
//
//   - The process becomes a subreaper (prctl(2), PR_SET_CHILD_SUBREAPER): orphaned descendants,
//     also those of other programs that the caller starts, become its children, which it has to
//     reap.
//   - The directory rdzv-UID in TMPDIR is created unless XDG_RUNTIME_DIR can be used, and a token
//     file if the job needs a token and there is none.
//   - Under mpiexec.hydra, if a script started this process, the program is also executed as
//     rdzv-keeper. That process holds the job key for the next agent of the script, and ends with
//     the launcher.
//
// To import this package, or package store, registers etcd's metrics with the default registry of
// Prometheus, and handlers with [net/http.DefaultServeMux]: /debug/pprof/, /debug/vars,
// /debug/requests and /debug/events.
package agent
