// Package nettcp reads /proc/net/tcp and tcp6: the TCP connections of this host, as far as this
// process may see them.
//
// It opens no connection, and knows nothing of who has those that it reads.
package nettcp
