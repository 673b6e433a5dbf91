// Package hosts reads how launchers name the hosts of a job, and picks the interfaces and addresses
// of this host by which others can reach it. All of it is pure but System, which asks the kernel.
//
// Name resolution, and anything that opens a connection, does not belong here.
package hosts
