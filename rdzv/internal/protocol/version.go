//go:build !rdzv_other_protocol

package protocol

// Version is increased by each change with which older agents cannot work.
const Version = 5
