// Package facts has what the nodes of a job must have in common for it to work.
package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/program"
)

// Of are the facts of the node of an agent, as far as files tell them. Variables in hidden are not
// among them: they become the same on all nodes, and may be secrets.
func Of(argv []string, p program.Program, env envmap.Env, hidden []string) rdzv.Facts {
	script, torch := p.Script, p.Torch
	f := rdzv.Facts{
		Program:   digest(argv[:min(len(argv), max(1, script.Words))]),
		Variables: comparedVariables(env),
	}
	for _, name := range hidden {
		delete(f.Variables, name)
	}
	know := func(name, value, scope string) {
		if value != "" {
			f.Known = append(f.Known, rdzv.Fact{Name: name, Value: value, Scope: scope})
		}
	}
	know("script "+script.Name, script.Digest, digest(argv))
	if p.Certain {
		know("python", p.Version, "")
		if torch.Dir == "" && torch.Unknown == "" {
			torch.Version = "not found"
		}
		know("torch", torch.Version, "")
	}
	return f
}

// digest identifies words, such as those of a command.
func digest(words []string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return hex.EncodeToString(sum[:4])
}

// comparedVariables are the user's variables that change how the workers of different nodes work
// together. Interfaces and adapters have different names on different nodes.
func comparedVariables(env envmap.Env) map[string]string {
	variables := map[string]string{}
	for name, value := range env {
		for _, prefix := range []string{"NCCL_", "GLOO_", "TORCH_", "OMP_"} {
			isLocal := strings.HasSuffix(name, "_IFNAME") || strings.HasSuffix(name, "_HCA")
			if strings.HasPrefix(name, prefix) && !isLocal {
				variables[name] = value
			}
		}
	}
	return variables
}
