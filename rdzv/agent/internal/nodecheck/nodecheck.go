// Package nodecheck finds out what a check of the nodes of a job tells of one of them.
package nodecheck

import (
	"context"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/command"
	"rdzv/rdzv/agent/internal/health"
	"rdzv/rdzv/agent/internal/ifname"
	"rdzv/rdzv/agent/internal/setup"
)

// Node is the node of an agent.
type Node struct {
	Setup   *setup.Setup
	CPUs    int  // that are allowed
	OneHost bool // all agents of the job are on this host
	First   bool // this is the first agent of the node
	// Environ is the environment of a worker, as far as it is known before the agents meet. Networks
	// are those to which its connections are restricted.
	Environ  []string
	Networks ifname.Networks
}

// Programs are those that a check runs.
type Programs struct {
	ImportTorch bool
	Health      string        // a command of /bin/sh; "" is none
	Limit       time.Duration // for each
}

// Found has the results about one node before the agents meet. Its agent publishes them when it
// joins. Problems are about programs of the check that failed.
type Found struct {
	Facts    []rdzv.NodeFact
	Problems []rdzv.Problem
}

// Run finds it out. ctx ends what takes long. What runs programs is done by one agent of each node.
func (n Node) Run(ctx context.Context, p Programs) (found Found) {
	found.Facts = n.facts(ctx)
	if n.Setup.Hangs() || !n.First {
		return found
	}
	if p.ImportTorch {
		found.add("import torch")(command.Limited(
			ctx, p.Limit, "import torch", n.Environ, n.Setup.Interpreter(), "-c", importTorch))
	}
	if p.Health != "" {
		found.add(health.Name)(health.Run(ctx, p.Limit, p.Health, n.Setup.Variables()))
	}
	return found
}

// importTorch tells which torch is imported, and whether it can use GPUs.
const importTorch = `import torch
n = torch.cuda.device_count()
print(torch.__version__ + ",", n, "GPUs" if torch.cuda.is_available() else "usable GPUs")`

// add returns what adds the result of a command as a fact: its last line, or that it failed.
func (found *Found) add(name string) func(line string, err error) {
	return func(line string, err error) {
		fact := rdzv.NodeFact{Name: name, Value: line}
		switch {
		case err != nil:
			fact.Value = "failed"
			found.Problems = append(found.Problems, rdzv.Problem{
				Kind: rdzv.OtherProblem, Text: err.Error(),
			})
		case line == "":
			fact.Value = "succeeded"
		}
		found.Facts = append(found.Facts, fact)
	}
}
