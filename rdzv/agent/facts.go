package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"rdzv/envmap"
	"rdzv/rdzv"
)

// facts are what this agent's node must have in common with the others for the job to work, as far
// as files tell.
func (l *Local) facts() rdzv.Facts {
	argv, script, torch := l.Config.Program, l.program.Script, l.program.Torch
	f := rdzv.Facts{
		Program:   digest(argv[:min(len(argv), max(1, script.Words))]),
		Variables: comparedVariables(l.env),
	}
	for _, name := range slices.Concat(l.Exported(), l.exports.own) {
		delete(f.Variables, name) // it becomes the same on all nodes, and may be a secret
	}
	know := func(name, value, scope string) {
		if value != "" {
			f.Known = append(f.Known, rdzv.Fact{Name: name, Value: value, Scope: scope})
		}
	}
	know("script "+script.Name, script.Digest, digest(argv))
	if l.program.Certain {
		know("python", l.program.Version, "")
		if torch.Dir == "" {
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

// compared reports the differences between the nodes, unless the verdict has them.
func (c *connection) compared(all []rdzv.Comparison, strict bool) {
	for _, comparison := range all {
		if comparison.Differs() && !strict {
			c.events.send(NodesDiffer{comparison})
		}
	}
}
