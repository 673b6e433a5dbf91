// Package masterport chooses and reserves MASTER_PORT, the TCP port on which rank 0 of torch serves
// its store.
//
// Which agent needs a port is decided by the caller.
package masterport
