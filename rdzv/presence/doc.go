// Package presence lets the host of a store know at once that an agent has gone,
// and an agent that the store has.
//
// Each agent holds one gRPC stream, Connect, on the connection that it uses for
// etcd. It says who it is, is answered, and from then on neither side says
// anything until the agent says goodbye. A stream that breaks without a goodbye
// is a dead agent: the kernel closes the connection of a killed process, so the
// store knows within a millisecond or two, where a lease needs seconds.
//
// A frozen or unplugged peer closes nothing. For that both ends of the connection
// are [LimitSilence]: the server pings ([ServerOptions]), and whoever hears nothing for
// the peer timeout gives the connection up.
//
// The package knows etcd's server as little as its client; both sides of the
// stream are here so that they cannot drift apart. What the loss of an agent means
// for the job does not belong here.
package presence
