// Package procfs reads what /proc tells of processes: one parser for each format of a file, for all
// packages but envmap.
//
// It is linked into processes that run before most packages are initialised, so it imports only
// what is ready before "reflect" is; what needs more, such as the tables of connections, has a
// package of its own below this one. What follows from what is read does not belong here.
package procfs
