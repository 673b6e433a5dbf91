// Package store runs the etcd server of one job, or a shared one of many jobs, inside this process.
//
// The server is a single member that no other can join: it has no peer port, no client port of
// etcd's own, no HTTP and no gateway. Agents connect through the listener that Serve is given,
// which must return connections of verified peers only (package meet provides it); there the server
// offers etcd's gRPC services and the presence service. The process itself uses [Server.Client],
// which calls the server without a connection.
//
// A store lives as long as its job, a shared one as long as its process. It starts within a few
// milliseconds (see start.go) and keeps its data in a private directory that it removes at the end
// (see dir.go).
//
// The package does not know the keys and values of a job, and does not decide who may connect.
package store
