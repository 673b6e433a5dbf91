// Package nodecheck finds out what a check of the nodes of a job tells of one of them.
package nodecheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"rdzv/internal/hint"
	"rdzv/rdzv/agent/internal/command"
	"rdzv/rdzv/agent/internal/health"
	"rdzv/rdzv/agent/internal/ifname"
	"rdzv/rdzv/agent/internal/setup"
	"rdzv/rdzv/check"
)

// Node is the node of an agent.
type Node struct {
	Setup   *setup.Setup
	CPUs    int  // that are allowed
	OneHost bool // all agents of the job are on this host
	First   bool // this is the first agent of the node
	// Environ is the environment of a worker. Networks are those to which its connections are
	// restricted.
	Environ  []string
	Networks ifname.Networks
}

// Found has the results about one node. Problems are about programs of the check that failed.
type Found struct {
	Facts    []check.Fact
	Problems []error
}

// LookTime is how long each look at something may take that may not respond.
const LookTime = 2 * time.Second

// Run finds it out. ctx ends what takes long. What runs programs is done by one agent of each node,
// within a limit for each: the import of torch, and a command of /bin/sh, "" is none.
func (n Node) Run(ctx context.Context, healthCmd string, limit time.Duration) (found Found) {
	found.Facts = n.facts(ctx)
	if !n.First {
		return found
	}
	n.importTorch(ctx, limit, &found)
	if healthCmd != "" {
		line, err := health.Run(ctx, limit, healthCmd, n.Setup.Variables())
		found.ran(check.Fact{Name: health.Name, Value: cmp.Or(line, "succeeded")}, err)
	}
	return found
}

// importTorch finds out which torch a worker's python imports, and whether that can use GPUs.
func (n Node) importTorch(ctx context.Context, limit time.Duration, found *Found) {
	const script = `import torch
n, built = torch.cuda.device_count(), ""
for name in "cuda", "hip":
    version = getattr(torch.version, name, None)
    if version:
        built += ", for " + name.upper() + " " + version
try:
    built += ", NCCL " + ".".join(map(str, torch.cuda.nccl.version()))
except Exception:
    pass  # it has none
gpus = "GPUs" if torch.cuda.is_available() else "usable GPUs"
print(torch.__version__ + ", " + str(n) + " " + gpus + built)`
	fact, python := check.Fact{Name: "import torch"}, n.Setup.Interpreter()
	switch {
	case len(n.Setup.Argv) == 0:
		fact.Value = "not tried: no program is given"
	case n.Setup.Path == "":
		fact.Value = "not tried"
	case python == "":
		fact.Value = "not tried: " + cmp.Or(n.Setup.Program.Unknown, "the program is no known python")
	}
	if fact.Value != "" {
		found.Facts = append(found.Facts, fact)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	line, err := command.LastLine(ctx, n.Setup.WorkerDir(), n.Environ, python, "-c", script)
	fact.Value = line
	switch {
	case errors.Is(err, command.ErrTimedOut):
		fact.Value, err = "timed out", nil
		fact.Warning = fmt.Sprintf("the import of torch took more than %v", limit)
		fact.Hint = "a slow file system or a GPU that hangs delays it; --health-timeout allows more"
	case err != nil:
		err = hint.With(fmt.Errorf("import torch failed: %w", err),
			"run there: "+python+" -c \"import torch\"; is the environment that has torch active?")
	}
	found.ran(fact, err)
}

// ran notes the result of a program, or that it failed.
func (found *Found) ran(fact check.Fact, err error) {
	if err != nil {
		fact.Value = "failed"
		found.Problems = append(found.Problems, err)
	}
	found.Facts = append(found.Facts, fact)
}
