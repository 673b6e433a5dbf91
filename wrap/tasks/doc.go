// Package tasks lets the tasks of a launcher on a node share an agent: one of them is the agent,
// the others wait while a runner runs their workers as the agent orders. So the workers remain
// descendants of their own task, in its control group, with its environment and streams.
//
//	launcher
//	  task 0: agent  -> runner -> workers of task 0
//	  task 1         -> runner -> workers of task 1
//
// The tasks meet at an abstract address (Address, Meet): whoever binds it is the agent. It sends
// welcome when it accepts a task, which starts its runner and sends hello, with its streams. From
// then on agent and runner use the connection, see package wrap, and the task keeps it open until
// nothing of its tree is left. The package knows nothing about jobs, ranks or launchers.
//
// # What happens when a process dies or is stopped
//
//	event                         effect
//	----------------------------  -----------------------------------------------------------------
//	the agent dies                the runner reads the end of the connection and kills the tree; the
//	                              task exits with CodeLost
//	the agent is stopped          the tree runs until its lease is over; after Tree.FrozenLimit the
//	                              runner kills the agent
//	the task dies                 its runner kills the tree; when nothing is left the agent reads the
//	                              end of the connection: wrap.ErrRunner
//	the task is stopped           after Tree.FrozenLimit its runner kills it
//	the runner dies, or is        the task kills the tree: wrap.ErrRunner; then it starts another
//	stopped for 2 s               runner, for the next tree
//
// A task is a process before package main is initialised, and before the packages of which main
// needs many: this package must not import net, regexp or runtime/debug, or what does.
package tasks
