// Package store runs the etcd server of one job inside this process.
//
// It is a single member that nobody else can join: no peer port, no client port
// of etcd's own, no HTTP, no gateway. Agents come in by the listener they are
// given, which is expected to hand out connections of verified peers only
// (package meet guards it); on it the server speaks etcd's gRPC services and the
// presence service. The process itself uses [Server.Client], which calls the
// server without a connection.
//
// A store lives as long as its job, so it is made to start fast (some milliseconds,
// see start.go) and keeps its few kilobytes in a private directory that goes
// with it (see dir.go).
//
// Keys and values, who may connect, and what a job is do not belong here.
package store
