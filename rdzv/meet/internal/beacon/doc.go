// Package beacon is how agents make themselves known on the local network: the packets that they
// send by multicast, and the sockets for them.
//
// Who sends when, and what follows from what is heard, does not belong here.
package beacon
