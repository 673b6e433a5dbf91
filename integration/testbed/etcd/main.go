// Etcd is a member of a cluster, of the version of etcd that rdzv embeds. It has the one option of
// Debian's etcd that the tests need:
//
//	etcd --config-file FILE
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "etcd: %v\n", err)
		os.Exit(1)
	}
}

// run serves until a signal ends the process, or a failure the member.
func run(args []string) error {
	if len(args) != 2 || args[0] != "--config-file" {
		return fmt.Errorf("cannot use the arguments %q", args)
	}
	config, err := embed.ConfigFromFile(args[1])
	if err != nil {
		return fmt.Errorf("cannot read the configuration %q: %w", args[1], err)
	}
	e, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("cannot start: %w", err)
	}
	return <-e.Err()
}
