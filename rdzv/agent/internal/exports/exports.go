// Package exports lets the workers of all agents have variables of rank 0's agent.
package exports

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"rdzv/envmap"
	"rdzv/internal/hint"
)

// Exports are variables that the workers of all agents get from the agent that runs rank 0. An
// agent that cannot run rank 0 knows only the values that the user has given, until the agents have
// met.
type Exports struct {
	Variables []string        // NAME=VALUE
	None      []envmap.Export // which select no variable
	Own       []string        // names of what they select from the environment of this agent
}

// Read determines the exports from what was given, the environment and the file; "" is none. Only
// an agent that may run rank 0 reads the file.
func Read(given []string, file string, env envmap.Env, mayRunRank0 bool) (e Exports, err error) {
	list, err := envmap.ParseExports(given)
	if err != nil {
		return e, err
	}
	own, _, _ := envmap.Exported(env, list)
	e.Own = Names(own)
	if !mayRunRank0 {
		list = slices.DeleteFunc(list, func(e envmap.Export) bool { return !e.Given })
	} else if file != "" {
		lines, err := readFile(file)
		if err != nil {
			return e, err
		}
		list = append(lines, list...)
	}
	e.Variables, e.None, err = envmap.Exported(env, list)
	return e, err
}

// maxFile leaves space for comments.
const maxFile = 8 * envmap.MaxExported

func readFile(name string) ([]envmap.Export, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read exports: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read exports: %w", err)
	}
	if len(text) > maxFile {
		err := fmt.Errorf("larger than %d bytes", maxFile)
		return nil, fmt.Errorf("cannot read exports: %q: %w", name, err)
	}
	exports, err := envmap.ParseExportFile(string(text))
	if err != nil {
		return nil, hinted(fmt.Errorf("cannot read exports: %q: %w", name, err), err)
	}
	return exports, nil
}

// hinted is err with the suggestion of its cause, if that has one.
func hinted(err error, cause error) error {
	if e, is := errors.AsType[*envmap.Error](cause); is {
		return hint.With(err, e.Hint)
	}
	return err
}

// Added are the exported variables that an environment has not, or not with these values, and that
// nothing of changes sets.
func (e Exports) Added(env envmap.Env, changes envmap.Changes) (added []envmap.KV) {
	set := func(name string) bool {
		return slices.ContainsFunc(changes.Set, func(kv envmap.KV) bool { return kv.Name == name })
	}
	for _, entry := range e.Variables {
		name, value, _ := strings.Cut(entry, "=")
		if own, exists := env[name]; !set(name) && (!exists || own != value) {
			added = append(added, envmap.KV{Name: name, Value: value})
		}
	}
	return added
}

// Names are the names of NAME=VALUE entries.
func Names(environ []string) []string {
	names := make([]string, len(environ))
	for i, entry := range environ {
		names[i], _, _ = strings.Cut(entry, "=")
	}
	return names
}
