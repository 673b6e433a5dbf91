// Package masterport chooses and holds MASTER_PORT: the port on which torch's rank 0 serves its
// store.
//
// Who needs one, and what else a worker is told, does not belong here.
package masterport
