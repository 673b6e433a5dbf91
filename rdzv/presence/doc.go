// Package presence lets the host of a store detect at once that an agent has died, and an agent
// that the store has.
//
// Each agent holds one gRPC stream, Connect, on the connection that it uses for etcd. The agent
// sends its id and the server answers; after that neither side sends anything until the agent says
// goodbye. A stream that breaks without a goodbye means a dead agent: the kernel closes the
// connection of a killed process, so that the store notices within 1 or 2 ms, where a lease would
// take seconds.
//
// A frozen or disconnected peer closes nothing. Therefore both ends limit the silence of their
// connection ([LimitSilence]): the server sends pings ([ServerOptions]), and whoever receives
// nothing for the peer timeout closes the connection.
//
// The package depends neither on etcd's server nor on its client. It contains both sides of the
// stream, so that they stay consistent. What the loss of an agent means for the job is decided in
// package rdzv.
package presence
