// Package nettcp reads /proc/net/tcp and /proc/net/tcp6: the TCP connections of this process's
// network namespace.
//
// It opens no connection, and does not find out which process owns one.
package nettcp
