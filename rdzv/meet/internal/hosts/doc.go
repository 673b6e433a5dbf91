// Package hosts parses the host lists of launchers, and selects the interfaces and addresses of
// this host that other hosts can reach. All functions except System and ByRoute are pure.
//
// It does not resolve names and opens no connections.
package hosts
