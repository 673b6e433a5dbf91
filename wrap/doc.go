// Package wrap runs programs ("workers") as one supervised process tree. Whichever process of the
// tree is killed, nothing of it is left running. The package knows nothing about jobs, ranks or
// launchers.
//
//	agent (the caller of Run, a child subreaper)
//	  runner (this program, executed again; a child subreaper)
//	    worker 0, worker 1, ... (each in its own process group, or all in the agent's: Signalled)
//	      descendants
//
// The runner starts the workers as the agent orders, waits for them, copies what they write, and
// adopts and waits for the descendants that they orphan. It has a process group of its own, which
// no launcher signals, and survives the signals that it can catch; its name and arguments do not
// contain that of the program. If the agent dies, the runner reads end of file from their socket
// and kills the tree. If the runner dies, the workers die with it (PR_SET_PDEATHSIG), and the agent
// adopts their descendants and kills them. Only if the second of agent and runner is killed before
// it has had a processor for about 4 ms since the first has ended, descendants may survive.
//
// A runner can belong to another process, a task (StartTaskRunner, NewRunner): then the task is its
// parent, which does what is said here of the death of a runner, and the agent orders what it runs.
//
// # Events, what Run returns, what is killed
//
//	event                         Run                            the tree
//	----------------------------  -----------------------------  ---------------------------------
//	a worker exits or is killed   Ended is called, Run goes on   the other workers and its
//	                                                             descendants continue
//	the last worker ends          without Linger: as if ctx      with Linger descendants that it
//	                              ended; with Linger: Run goes   left continue
//	                              on until ctx ends
//	ctx ends                      results, nil                   SIGTERM to running workers and to
//	                                                             descendants left by ended ones;
//	                                                             after Grace, and after the call
//	                                                             of Dumping, SIGABRT to workers
//	                                                             that catch it, and SIGKILL to all
//	                                                             0.5 s later, at once if no worker
//	                                                             catches SIGABRT
//	ctx ends, a worker runs a     as above                       SIGTERM to those of its processes
//	pid namespace in which it                                    that catch it; if none does,
//	cannot be ended by SIGTERM                                   SIGKILL to the namespace
//	ctx ends, Grace is 0          results, nil                   SIGTERM to running workers,
//	                                                             immediately followed by SIGKILL
//	                                                             to all
//	ctx ends with the cause       as above                       no SIGTERM to workers that had
//	*Stop{Delivered}                                             received Delivered by the time At,
//	                                                             before half of Grace
//	ctx ends with the cause       as above                       SIGABRT instead of SIGTERM to
//	*Stop{DumpStacks}                                            workers that catch SIGABRT
//	Tree.DumpStacks is closed     Dumping is called, Run goes on SIGABRT to workers that ignore
//	                                                             SIGTERM and catch SIGABRT
//	Tree.Kill is closed           results, nil                   SIGKILL to all
//	Tree.Lease is over            Ended with ErrLeaseOver;       SIGTERM to running workers and to
//	                              results, nil                   descendants left by ended ones,
//	                                                             SIGKILL to all after LeaseGrace;
//	                                                             if it ends while this process and
//	                                                             the workers, or what they have
//	                                                             left, are stopped, SIGSTOP
//	                                                             to all as soon as they are
//	                                                             continued, and then SIGCONT after
//	                                                             Renew, or SIGKILL after Revoke or
//	                                                             the end of ctx
//	Lease.Revoke is called        results, nil                   SIGKILL to all
//	a log cannot be written, or   LogLost is called, Run goes on the worker continues without it
//	does not respond for 5 s
//	a worker cannot be started    Ended with Code 126 or 127     the other workers continue
//	                              and Err, Run goes on
//	ctx ends before a worker is   Ended with Stopped, PID 0 and  the worker is not started
//	started                       Signal SIGTERM
//	the runner dies, is stopped   results, ErrRunner             SIGKILL to all
//	for 2 s, or does not take
//	orders, before the tree has
//	ended
//	a process survives SIGKILL    results, a *SurvivorError for  it is left running
//	for 3 s (another user's, or   each such process
//	hanging in the kernel), in
//	which no other one has died
//	the agent dies, or is stopped -                              SIGKILL to all, also to the
//	alone for FrozenLimit                                        agent, sent by the runner, which
//	                                                             writes to logs what is left
//	the task of a runner dies,    results, ErrRunner             as if the agent had died
//	or is stopped for FrozenLimit
//	the Tree is not valid, or     nil, an error                  nothing was started
//	the runner cannot be started
//
// # Environment of a worker
//
// A worker gets its own streams (see Worker and Output) and what the agent had when it started the
// runner: descriptors without close-on-exec, session, working directory, limits, signal mask, CPU
// affinity and memory policy, unless Worker.Bind sets these two. Signals have their default action,
// except that SIGHUP, SIGINT and the terminal's stop signals (SIGTSTP, SIGTTIN, SIGTTOU) stay
// ignored if they were ignored when the agent started (nohup). Other signals that were ignored then
// have their default action: the Go runtime hides that they were ignored.
//
// # The runner
//
// An init function of this package makes the process a runner, if it was executed as one: what a
// program initialises before this package, it initialises in its runners too, and a runner begins
// to work when that is done. Agent and runner exchange messages over a stream socket: a header, a
// body of JSON, and descriptors (SCM_RIGHTS).
//
// # Requirements
//
// Linux with /proc mounted; no privileges. Without pidfds (before Linux 5.3) Ancestry.Wait reads
// /proc every 250 ms. If the agent is process 1 of a container it does not reap processes that are
// not of its tree: that needs an init.
package wrap
