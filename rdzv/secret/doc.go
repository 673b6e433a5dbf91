// Package secret creates, reads and derives the secrets that the agents of one job share: the
// user's token and its file, the job key derived from the token, and the certificates derived from
// the job key.
//
// Which secret a job uses (token, launcher's variable, PMI, join line) is decided by package meet.
// This package opens no connection.
package secret
