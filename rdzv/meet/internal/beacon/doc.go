// Package beacon implements the multicast packets by which agents without a launcher find each
// other on the local network: their encoding, and the sockets that send and receive them.
//
// Package meet decides when beacons are sent and what follows from a received one.
package beacon
