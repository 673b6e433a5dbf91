//go:build !amd64

package stacks

func oldCall(int) call { return call{} }
