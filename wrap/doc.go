// Package wrap runs programs ("workers") as one supervised tree: whichever process of it is killed, nothing of the tree
// is left running. It knows nothing of jobs, ranks or launchers.
//
//	agent (the caller of Run, a subreaper)
//	  watchdog (this binary again, a subreaper in a process group of its own, but in the agent's session)
//	    sentinel (only with Tree.Source: in the agent's process group, see Signals)
//	    worker 0, worker 1, ... (in the agent's process group)
//	      descendants
//
// A program that imports this package is its own watchdog: executed under the name of one it never reaches main (see
// package internal/watchdog).
//
// Workers are started by the watchdog, which alone waits for them and for whatever they orphan. It dies hard: it is in
// no process group that a launcher signals, and survives every signal but SIGKILL and SIGSTOP (and 32 to 34, which thread
// libraries keep for themselves, and Go leaves alone). If it dies all the same,
// the agent adopts its tree and kills it; if the agent dies, the watchdog reads the end of their socket and kills the
// tree; if both die in one breath, the workers themselves (not their descendants) still die with the watchdog.
//
// # What ends it, what Run returns, what is killed
//
//	what happens                           Run                                        the tree
//	-------------------------------------  -----------------------------------------  ------------------------------------------
//	a worker exits n or dies of signal s   Ended is called; Run goes on               its descendants and the others live on
//	the last worker has ended              without Linger: as "ctx ends"; with it,    with Linger left-over descendants live on
//	                                       Run goes on until ctx ends
//	ctx ends                               results, nil                               SIGTERM to live workers and to what ended
//	                                                                                  ones left; Grace later SIGABRT to workers
//	                                                                                  that catch it, 0.5 s later SIGKILL to all
//	ctx ends, Grace is 0                   results, nil                               SIGTERM to live workers, SIGKILL to all
//	                                                                                  right after it
//	ctx ends, cause *Stop{Delivered}       the same                                   no SIGTERM to workers that had had it by At
//	ctx ends, cause *Stop{Stacks}          the same                                   SIGABRT in place of SIGTERM where caught
//	Deaf is closed                         Run goes on                                SIGABRT to workers that ignore SIGTERM and
//	                                                                                  catch SIGABRT
//	Kill is closed                         results, nil                               SIGKILL to all at once
//	a worker cannot be started             Ended: Code 126 or 127, Err; Run goes on   the other workers live on
//	ctx ends before a worker is started    Ended: Stopped, PID 0, Signal SIGTERM      it never lives
//	the watchdog dies or cannot be talked  results, ErrWatchdog                       SIGKILL to all, by the agent
//	to while something of the tree lives
//	something survives SIGKILL for 3 s     results, *LeftError naming it              it is left
//	(another user's, hung in the kernel)
//	the agent dies                         -                                          SIGKILL to all, by the watchdog
//	the Tree is not usable, no watchdog    nil, an error                              nothing was started
//
// # What a worker finds
//
// Its own streams (see Worker), the descriptors without close-on-exec with which the agent itself was started, the
// agent's process group, session, working directory, limits and signal mask. Signals have their default action, but
// SIGHUP, SIGINT and the terminal's stop signals stay ignored if the agent was started so (nohup). Other ignored
// signals do not: Go programs cannot tell.
//
// # What it needs
//
// Linux with /proc mounted; no privileges. Without pidfds (before Linux 5.3) Ancestors looks every 250 ms instead of being
// told. As process 1 of a container the agent does not reap strangers: let an init do that.
package wrap
