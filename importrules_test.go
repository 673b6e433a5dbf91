package imports

// rules are the imports that are forbidden and allowed in the packages of a folder.
var rules = []struct {
	packages string
	// forbidden has a reason for each import path; "x/..." is x and all packages below it. A package
	// of the standard library must not be imported, another one not even through other packages.
	// Tests may import it, except in package integration.
	forbidden map[string]string
	// allowed lists what may be imported in addition to the standard library and the packages below
	// the package itself; nil is anything.
	allowed []string
}{
	{
		packages: "./envmap/...",
		forbidden: map[string]string{
			"os":            "the environment is an argument, so that tests have a table of launchers",
			"net/...":       "addresses are arguments: envmap is pure",
			"time":          "clocks are arguments: envmap is pure",
			"rdzv/rdzv/...": "envmap translates environments and does not depend on jobs",
			"rdzv/wrap/...": "envmap translates environments and does not depend on processes",
		},
		allowed: []string{"rdzv/internal/cgroup"},
	},
	{
		packages: "./rdzv",
		forbidden: map[string]string{
			"go.etcd.io/etcd/server/v3/...": "package rdzv is a client; etcd's server costs 10 " +
				"MB and 10 ms",
			"rdzv/envmap/...": "a job does not depend on its launcher",
			"rdzv/wrap/...":   "a job does not depend on how its workers run",
			"rdzv/rdzv/store/...": "package rdzv is a client; package agent starts the " +
				"store",
			"rdzv/rdzv/meet/...": "connections are arguments of package rdzv",
		},
		allowed: []string{
			"go.etcd.io/etcd/api/v3/...", "go.etcd.io/etcd/client/v3", "google.golang.org/grpc/...",
			"go.uber.org/zap", "github.com/hashicorp/go-multierror", "rdzv/rdzv/presence",
			"rdzv/internal/boottime",
		},
	},
	{
		packages: "./rdzv/restart",
		forbidden: map[string]string{
			"os/...":  "a decision depends on the failures alone",
			"net/...": "a decision depends on the failures alone",
		},
		allowed: []string{},
	},
	{
		packages:  "./rdzv/internal/keys",
		forbidden: map[string]string{"os/...": "keys are made from names alone"},
		allowed:   []string{},
	},
	{
		packages: "./rdzv/internal/kv",
		forbidden: map[string]string{
			"rdzv/rdzv/internal/keys": "calls of a store do not depend on what it is for",
		},
		allowed: []string{
			"go.etcd.io/etcd/api/v3/...", "go.etcd.io/etcd/client/v3", "google.golang.org/grpc/...",
		},
	},
	{
		packages: "./rdzv/internal/lease",
		allowed: []string{
			"go.etcd.io/etcd/api/v3/...", "go.etcd.io/etcd/client/v3", "rdzv/internal/boottime",
		},
	},
	{
		packages: "./rdzv/etcd",
		forbidden: map[string]string{
			"go.etcd.io/etcd/server/v3/...": "package etcd is a client",
		},
		allowed: []string{
			"go.etcd.io/etcd/api/v3/...", "go.etcd.io/etcd/client/v3", "google.golang.org/grpc/...",
			"go.uber.org/zap", "rdzv/rdzv",
		},
	},
	{
		packages: "./rdzv/agent",
		forbidden: map[string]string{
			"rdzv/cmd/...": "a program that embeds an agent has its own command line",
		},
		allowed: []string{
			"rdzv/rdzv", "rdzv/rdzv/check", "rdzv/rdzv/etcd", "rdzv/rdzv/masterport", "rdzv/rdzv/meet",
			"rdzv/rdzv/presence", "rdzv/rdzv/restart",
			"rdzv/rdzv/secret", "rdzv/rdzv/stacks", "rdzv/rdzv/status",
			"rdzv/rdzv/store", "rdzv/envmap", "rdzv/wrap", "rdzv/internal/boottime",
			"rdzv/internal/claim", "rdzv/internal/hint", "rdzv/internal/jsontext", "rdzv/internal/plural",
			"rdzv/internal/procfs", "rdzv/internal/shell",
			"rdzv/internal/torchlib",
			"go.etcd.io/etcd/client/v3", "google.golang.org/grpc/...",
			"github.com/hashicorp/go-multierror",
			"golang.org/x/sys/unix",
		},
	},
	{
		packages: "./rdzv/agent/sharedstore",
		forbidden: map[string]string{
			"rdzv/rdzv/agent": "no agent runs beside a shared store",
			"rdzv/wrap/...":   "a shared store starts no processes",
		},
		allowed: []string{
			"rdzv/rdzv/meet", "rdzv/rdzv/secret", "rdzv/rdzv/store", "rdzv/internal/procfs",
			"go.etcd.io/etcd/client/v3",
		},
	},
	{
		packages:  "./rdzv/check",
		forbidden: map[string]string{"os/...": "a report is made from answers of agents alone"},
		allowed:   []string{"rdzv/rdzv", "rdzv/internal/plural"},
	},
	{
		packages: "./rdzv/stacks",
		allowed: []string{
			"golang.org/x/sys/unix", "rdzv/internal/procfs/...",
		},
	},
	{
		packages:  "./rdzv/status",
		forbidden: map[string]string{"os/...": "a report is made from answers of agents alone"},
		allowed:   []string{"rdzv/rdzv"},
	},
	{
		packages: "./rdzv/agent/inspect",
		forbidden: map[string]string{
			"rdzv/rdzv/agent": "whoever asks agents does not run one",
		},
		allowed: []string{
			"rdzv/rdzv", "rdzv/rdzv/agent/internal/query", "rdzv/rdzv/stacks", "rdzv/rdzv/status",
			"rdzv/internal/procfs",
		},
	},
	{
		packages: "./rdzv/agent/internal/activity ./rdzv/agent/internal/devicefiles " +
			"./rdzv/agent/internal/host ./rdzv/agent/internal/node ./rdzv/agent/internal/output " +
			"./rdzv/agent/internal/postmortem ./rdzv/agent/internal/program " +
			"./rdzv/agent/internal/query ./rdzv/agent/internal/ras",
		forbidden: map[string]string{
			"rdzv/rdzv/...":   "facts about a host or a worker do not depend on the job",
			"rdzv/envmap/...": "facts about a host or a worker do not depend on the launcher",
			"rdzv/wrap/...":   "facts about a host or a worker do not depend on how it runs",
		},
		allowed: []string{
			"golang.org/x/sys/unix", "rdzv/internal/cgroup", "rdzv/internal/hint", "rdzv/internal/peer",
			"rdzv/internal/procfs", "rdzv/internal/shell",
		},
	},
	{
		packages: "./rdzv/agent/internal/...",
		forbidden: map[string]string{
			"rdzv/rdzv/agent": "a part of an agent gets what it needs as arguments",
		},
	},
	{
		packages: "./rdzv/agent/internal/program",
		forbidden: map[string]string{
			"os/...": "the file system and the environment are arguments, so that tests have " +
				"installations",
		},
	},
	{
		packages: "./cmd/rdzv/internal/console",
		allowed: []string{
			"rdzv/rdzv", "rdzv/rdzv/agent", "rdzv/rdzv/check", "rdzv/rdzv/restart",
			"rdzv/rdzv/stacks", "rdzv/rdzv/status",
			"rdzv/envmap", "rdzv/wrap",
			"rdzv/internal/plural", "rdzv/internal/shell",
			"golang.org/x/sys/unix",
		},
	},
	{
		packages: "./rdzv/presence",
		forbidden: map[string]string{
			"go.etcd.io/...": "presence depends on gRPC alone",
		},
		allowed: []string{
			"google.golang.org/grpc/...", "google.golang.org/protobuf/...", "rdzv/rdzv/internal/protocol",
			"rdzv/internal/descriptor",
		},
	},
	{
		packages: "./rdzv/internal/record",
		forbidden: map[string]string{
			"os/...":  "values depend on nothing but themselves",
			"net/...": "values depend on nothing but themselves",
		},
		allowed: []string{
			"github.com/hashicorp/go-multierror", "golang.org/x/sys/unix",
			"rdzv/internal/plural", "rdzv/rdzv/internal/protocol", "rdzv/rdzv/restart",
		},
	},
	{
		packages: "./rdzv/internal/job",
		forbidden: map[string]string{
			"os":      "a decision depends on the keys of the store and on the time that is given",
			"context": "a decision waits for nothing",
			"sync":    "a decision is made by one goroutine, which the caller owns",
		},
		allowed: []string{
			"rdzv/rdzv/internal/keys", "rdzv/rdzv/internal/placement", "rdzv/rdzv/internal/protocol",
			"rdzv/rdzv/internal/record", "rdzv/rdzv/restart", "rdzv/internal/plural",
		},
	},
	{
		packages: "./rdzv/internal/placement",
		forbidden: map[string]string{
			"os":       "ranks depend on the members alone",
			"net/http": "addresses are compared, not used",
			"time":     "ranks do not depend on the time",
		},
		allowed: []string{"rdzv/rdzv/internal/record"},
	},
	{
		packages: "./rdzv/store",
		forbidden: map[string]string{
			"rdzv/envmap/...":    "a store does not depend on the launcher",
			"rdzv/wrap/...":      "a store starts no processes",
			"rdzv/rdzv/meet/...": "listeners are arguments of package store",
		},
	},
	{
		packages: "./rdzv/meet/...",
		forbidden: map[string]string{
			"rdzv/envmap/...":       "the launcher is an argument of package meet",
			"rdzv/wrap/...":         "package meet starts no workers",
			"rdzv/rdzv/store/...":   "package meet calls a function that hosts the store",
			"go.etcd.io/...":        "package meet returns connections, for any protocol",
			"google.golang.org/...": "package meet returns connections, for any protocol",
		},
		allowed: []string{
			"golang.org/x/sys/unix", "rdzv/rdzv/masterport", "rdzv/rdzv/secret",
			"rdzv/internal/claim", "rdzv/internal/filelock", "rdzv/internal/interfaces",
			"rdzv/internal/portuser", "rdzv/internal/procfs/...",
		},
	},
	{
		packages: "./rdzv/meet/internal/gate",
		forbidden: map[string]string{
			"rdzv/rdzv/meet/internal/beacon": "admission does not depend on how the store was " +
				"found",
			"rdzv/rdzv/meet/internal/hosts": "addresses to listen on or to dial are arguments",
			"rdzv/rdzv/meet/internal/pmi": "admission does not depend on how the store was " +
				"found",
		},
		allowed: []string{"rdzv/rdzv/secret"},
	},
	{
		packages: "./rdzv/meet/internal/beacon",
		forbidden: map[string]string{
			"rdzv/rdzv/meet/internal/gate": "package beacon sends and receives beacons and " +
				"connects nothing",
		},
		allowed: []string{"golang.org/x/sys/unix", "rdzv/rdzv/secret"},
	},
	{
		packages: "./rdzv/meet/internal/hosts",
		forbidden: map[string]string{
			"rdzv/rdzv/...": "parsing host names does not depend on a job",
			"time":          "package hosts is pure",
		},
		allowed: []string{"rdzv/internal/interfaces"},
	},
	{
		packages: "./rdzv/meet/internal/pmi",
		forbidden: map[string]string{
			"rdzv/rdzv/secret": "PMI-1 transports any text",
			"rdzv/rdzv/meet":   "a client of PMI-1 does not depend on why it is used",
		},
		allowed: []string{"golang.org/x/sys/unix"},
	},
	{
		packages: "./rdzv/secret",
		forbidden: map[string]string{
			"net/...":  "package secret creates and reads secrets and sends none",
			"rdzv/...": "secret is below all other packages",
		},
		allowed: []string{"golang.org/x/sys/unix"},
	},
	{
		packages:  "./internal/claim",
		forbidden: map[string]string{"rdzv/rdzv/...": "claim is below the packages that claim names"},
		allowed:   []string{"rdzv/internal/peer"},
	},
	{
		packages:  "./internal/filelock",
		forbidden: map[string]string{"rdzv/...": "filelock is below all other packages"},
		allowed:   []string{},
	},
	{
		packages:  "./internal/interfaces",
		forbidden: map[string]string{"rdzv/...": "interfaces is below all other packages"},
		allowed:   []string{},
	},
	{
		packages:  "./internal/peer",
		forbidden: map[string]string{"rdzv/...": "peer is below all other packages"},
		allowed:   []string{},
	},
	{
		packages:  "./internal/hint",
		forbidden: map[string]string{"rdzv/...": "hint is below all other packages"},
		allowed:   []string{},
	},
	{
		packages:  "./internal/jsontext",
		forbidden: map[string]string{"rdzv/...": "jsontext is below all other packages"},
		allowed:   []string{},
	},
	{
		packages:  "./internal/plural",
		forbidden: map[string]string{"rdzv/...": "plural is below all other packages"},
		allowed:   []string{},
	},
	{
		packages:  "./internal/shell",
		forbidden: map[string]string{"rdzv/...": "shell is below all other packages"},
		allowed:   []string{},
	},
	{
		packages: "./internal/torchlib",
		allowed:  []string{"golang.org/x/sys/unix", "rdzv/internal/procfs"},
	},
	{
		packages: "./internal/procfs/...",
		forbidden: map[string]string{
			"net":      "procfs reads files; its addresses are those of net/netip",
			"rdzv/...": "procfs is below all other packages",
		},
		allowed: []string{},
	},
	{
		packages: "./rdzv/masterport",
		allowed:  []string{"golang.org/x/sys/unix", "rdzv/internal/portuser", "rdzv/internal/procfs/..."},
	},
	{
		packages: "./wrap/...",
		forbidden: map[string]string{
			"rdzv/envmap/...": "a worker's environment is an argument",
			"rdzv/rdzv/...":   "package wrap runs processes and does not depend on jobs",
		},
		allowed: []string{
			"github.com/hashicorp/go-multierror", "golang.org/x/sys/unix", "rdzv/internal/procfs",
			"rdzv/internal/boottime", "rdzv/internal/descriptor", "rdzv/internal/openlimit",
			"rdzv/internal/peer", "rdzv/internal/shell", "rdzv/wrap",
		},
	},
	{
		packages: "./wrap/runner",
		forbidden: map[string]string{
			"net/...":         "a runner starts before the packages are initialised that need package net",
			"crypto/tls":      "a runner starts before the packages are initialised that need package net",
			"rdzv/envmap/...": "what tasks share is an argument",
			"rdzv/rdzv/...":   "a runner does not know the job",
		},
		allowed: []string{
			"github.com/hashicorp/go-multierror", "golang.org/x/sys/unix", "rdzv/internal/boottime",
			"rdzv/internal/descriptor", "rdzv/internal/peer", "rdzv/wrap", "rdzv/wrap/internal/shared",
		},
	},
	{
		packages: "./integration/...",
		forbidden: map[string]string{
			"rdzv/cmd/...":        "integration tests use the binary, as a user does",
			"rdzv/envmap/...":     "integration tests use the binary, as a user does",
			"rdzv/rdzv/agent/...": "integration tests use the binary, as a user does",
			"rdzv/rdzv/store/...": "etcd's server would delay the start of all workers by 6 ms",
			"rdzv/wrap/...":       "integration tests use the binary, as a user does",
		},
	},
}

// goPackage is a package as go list prints it.
