//go:build rdzv_other_protocol

package protocol

// Version of a binary for tests of what agents of different versions say.
const Version = 6
