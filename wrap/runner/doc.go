// Package runner runs the workers of several tasks of a launcher on a node under one agent. One
// task of the node is the agent. Each other task is a runner: a small process that runs its workers
// with package wrap, as the agent orders, so that they remain descendants of their own task, in its
// control group, with its environment and streams.
//
//	launcher
//	  task 0: agent            holder -> workers of task 0
//	  task 1: runner           holder -> workers of task 1
//
// The tasks meet at an abstract address (Address, Meet): whoever binds it is the agent. The package
// knows nothing about jobs, ranks or launchers.
//
// # What happens when a process dies or is stopped
//
//	event                         effect
//	----------------------------  -----------------------------------------------------------------
//	the agent dies                runner and holder read the end of the connection, and kill the
//	                              tree; the runner exits with CodeLost
//	the agent dies, the runner    the holder kills the tree
//	is stopped
//	the agent is stopped          the tree runs until its lease is over; after Tree.FrozenLimit the
//	                              holder kills the agent
//	the runner dies               its holder kills the tree; when nothing is left the agent reads
//	                              the end of the connection: ErrLost
//	the runner is stopped         after Tree.FrozenLimit its holder kills it; the agent kills it when
//	                              it does not end its tree, or does not read orders for 10 s
//	the holder dies               the runner kills the tree: wrap.ErrHolder
//
// # The connection
//
// It is a stream of frames: a header, a body of JSON, and descriptors (SCM_RIGHTS). The agent sends
// welcome when it accepts a runner, which sends hello, with its streams. Then the agent sends
// orders, and the runner what happens. The time of a lease and the times of the last output are in
// memory that both share, so that neither wakes the other.
//
// A runner is a process before package main is initialised, and before the packages of which main
// needs many: this package must not import package net, and what needs it.
package runner
