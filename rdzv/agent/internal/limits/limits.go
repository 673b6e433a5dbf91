// Package limits checks whether this process may use what an agent needs.
package limits

import (
	"fmt"

	"rdzv/internal/plural"
	"rdzv/rdzv/agent/internal/host"
)

// How many files an agent may have to open, with some reserve: itself, while it hosts the store and
// runs no worker, for each of its workers, and for each other agent that connects to its store.
const (
	ownFiles    = 64
	hostFiles   = 40
	workerFiles = 6
	memberFiles = 1
)

// ownAddresses are the addresses that an agent with a store reserves, most of which it does not
// use: 1.2 GB in the Go runtime, and the database.
const ownAddresses = 2 << 30

// Check checks whether this process may open as many files and use as many addresses as an agent
// itself needs.
func Check() error {
	if err := host.CheckFiles("", ownFiles); err != nil {
		return err
	}
	return host.CheckAddressSpace(ownAddresses)
}

// ForWorkers checks whether an agent may open as many files as so many workers need.
func ForWorkers(n int) error {
	return host.CheckFiles("start "+plural.Of(n, "worker"), ownFiles+workerFiles*n)
}

// ToHost checks whether all other agents can be connected to a store in this process while no
// worker runs.
func ToHost(agents int) error {
	return host.CheckFiles("host the store for "+plural.Of(agents, "agent"),
		hostFiles+memberFiles*(agents-1))
}

// ForAll checks the same while workers run. It is nil if there are not enough files for the workers
// alone, which ForWorkers reports.
func ForAll(agents, workers int) error {
	if ForWorkers(workers) != nil {
		return nil
	}
	do := fmt.Sprintf("host the store for %s and start %s", plural.Of(agents, "agent"),
		plural.Of(workers, "worker"))
	return host.CheckFiles(do, ownFiles+workerFiles*workers+memberFiles*(agents-1))
}
