package envmap

import (
	"slices"
	"strings"
)

// TorchOptions select how a worker's environment is made.
type TorchOptions struct {
	// Device is how the worker gets its device; "" is DeviceIndex.
	Device DeviceMode
	// Set holds NAME=TEMPLATE entries (see Fields), which override everything else.
	Set []string
	// AsOpenMPI also sets OMPI_COMM_WORLD_RANK, _SIZE and so on, for programs that read them.
	AsOpenMPI bool
	// StripLauncher removes the launcher's rank variables. It must be set if the agent has several
	// workers, none of which is the launcher's task: an MPI library in a worker then starts as a
	// singleton instead of failing.
	StripLauncher bool
}

// Changes are the differences between a worker's environment and the agent's.
type Changes struct {
	Set      []KV     // in the order in which they are printed
	Unset    []string // variables of the agent to remove, sorted
	Replaced []KV     // variables of Set with the different values that the user has given them
	Kept     []string // settings that the user has made and that are not changed
	Notes    []string // sentences for the user: what will not work
}

// Torch returns the complete environment of a worker, which is environ with the changes of
// [TorchChanges] applied, and notes for the user: what was replaced, and what will not work.
func Torch(environ []string, id Identity, o TorchOptions) ([]string, []string, error) {
	changes, err := TorchChanges(ParseEnv(environ), id, o)
	if err != nil {
		return nil, nil, err
	}
	return changes.Apply(environ), append(changes.replacements(), changes.Notes...), nil
}

// replacements are the notes about replaced values.
func (c Changes) replacements() (notes []string) {
	for _, old := range c.Replaced {
		i := slices.IndexFunc(c.Set, func(kv KV) bool { return kv.Name == old.Name })
		notes = append(notes, "replacing "+old.Name+"="+old.Value+" from the environment by "+c.Set[i].Value)
	}
	return notes
}

// Apply returns environ with the changes applied: kept entries in their order, then those set.
func (c Changes) Apply(environ []string) []string {
	drop := make(map[string]bool, len(c.Set)+len(c.Unset))
	for _, name := range c.Unset {
		drop[name] = true
	}
	for _, kv := range c.Set {
		drop[kv.Name] = true
	}
	result := make([]string, 0, len(environ)+len(c.Set))
	for _, entry := range environ {
		if name, _, ok := strings.Cut(entry, "="); ok && name != "" && !drop[name] {
			result = append(result, entry)
		}
	}
	for _, kv := range c.Set {
		result = append(result, kv.Name+"="+kv.Value)
	}
	return result
}

// TorchChanges returns the changes that make a worker's environment from the agent's:
//
//   - the worker's identity, under torchrun's names. It replaces existing variables.
//   - settings that torch and its libraries read. Existing values are kept.
//   - the variables of o.Set, which override both.
//
// Variables that begin with RDZV_ belong to the agent (flags and secrets) and are removed, except
// for those set here. An error is an *Error: an impossible identity, device mode or template.
func TorchChanges(env Env, id Identity, o TorchOptions) (Changes, error) {
	if err := id.check(); err != nil {
		return Changes{}, err
	}
	device, err := assign(id, o.Device)
	if err != nil {
		return Changes{}, err
	}
	w := &worker{env: env, index: map[string]int{}}
	w.fromLauncher = id.Launcher == Torchrun || id.Launcher == Kubeflow
	w.strip(o.StripLauncher)
	w.identity(id, device)
	w.settings(id)
	if id.Launcher == OpenMPI4 && !o.StripLauncher {
		// With this, a task of Open MPI 4 can run several MPI programs in sequence, for example
		// from a shell script: PMIx's shared memory accepts a rank only once ("getting local rank
		// failed"), its hash table any number of times (measured: 4.1.4). Open MPI 5 fails more
		// often with it.
		w.setDefault("PMIX_MCA_gds", "hash")
	}
	w.notes = append(w.notes, device.notes...)
	for _, kv := range device.set {
		w.put(kv.Name, kv.Value)
	}
	if o.AsOpenMPI {
		w.openMPI(id)
	}
	if err := w.templates(id, device, o.Set); err != nil {
		return Changes{}, err
	}
	isSet := func(name string) bool { _, set := w.index[name]; return set }
	slices.Sort(w.unset)
	return Changes{
		Set: w.vars, Replaced: w.replaced, Notes: w.notes,
		Unset: slices.DeleteFunc(w.unset, isSet), Kept: slices.DeleteFunc(w.kept, isSet),
	}, nil
}
