// Package secret makes, reads and derives what the agents of one job share and nobody else has: the
// user's token and the file it is kept in, the job key that is derived from it, and the
// certificates that are derived from the job key.
//
// Where a secret comes from in a particular job (a launcher's variable, PMI, the join line) does
// not belong here: package meet decides that. Nothing here opens a connection.
package secret
