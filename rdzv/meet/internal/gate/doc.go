// Package gate admits the agents of a job to its store: a listener that lets in only who passes the
// handshake, and the dialling side of it.
//
// Which addresses to listen on or to dial, who hosts, and what is spoken on a connection that has
// passed, does not belong here.
package gate
