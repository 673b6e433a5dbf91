// Package gate admits the agents of one job, and nobody else, to the job's store. It has both
// sides: the listener (Gate) and the client (Dialer).
//
// It does not decide which addresses are used or which agent hosts the store, and does not know the
// protocol that follows on an admitted connection.
package gate
