package envmap

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// DeviceMode selects how a worker gets its device.
type DeviceMode string

const (
	// DeviceIndex sets RDZV_DEVICE_INDEX to the index of the worker's device among the visible
	// ones. It is the default.
	DeviceIndex DeviceMode = "index"
	// DeviceMask makes only the worker's own device visible, with index 0.
	DeviceMask DeviceMode = "mask"
	// DeviceLocalRank sets LOCAL_RANK, too, to the device's index, for programs that call
	// set_device(LOCAL_RANK).
	DeviceLocalRank DeviceMode = "local-rank"
	// DeviceVirtual makes only the worker's own device visible, with index 0, and LOCAL_RANK is 0
	// too, as with --virtual-local-rank of torchrun (torch 2.9).
	DeviceVirtual DeviceMode = "virtual-local-rank"
)

// DeviceModes returns all modes, for help and messages.
func DeviceModes() []string {
	return []string{
		string(DeviceIndex), string(DeviceMask), string(DeviceLocalRank), string(DeviceVirtual),
	}
}

// device is the choice of assign for one worker: TorchChanges makes variables and notes of it, and
// NUMA.Bind binds the worker to the node of its card.
type device struct {
	index     int // among the visible devices; Unknown if there is none
	localRank int // the value for LOCAL_RANK
	card      card
	set       []KV
	notes     []string
}

// assign chooses a worker's device. A single visible device has index 0 for every local rank: the
// launcher gave each task its own (srun --gpus-per-task=1). Of several devices each local rank gets
// the one with its index; if there are too few they are shared round-robin.
func assign(id Identity, mode DeviceMode) (device, error) {
	d := device{index: Unknown, localRank: id.LocalRank}
	if mode == "" {
		mode = DeviceIndex
	}
	if !slices.Contains(DeviceModes(), string(mode)) {
		err := &Error{Text: "cannot use device mode " + strconv.Quote(string(mode)) +
			": not one of " + strings.Join(DeviceModes(), ", ")}
		if mode == "none" { // of earlier versions
			err.Hint = "omit it; CUDA_VISIBLE_DEVICES= hides the GPUs"
		}
		return d, err
	}
	if id.Visible.Note != "" {
		d.notes = append(d.notes, id.Visible.Note)
	}
	switch mode {
	case DeviceVirtual:
		d.localRank = 0
		return d.mask(id)
	case DeviceMask:
		return d.mask(id)
	}
	count := id.Visible.usable()
	switch {
	case !id.Visible.Known:
		d.index = id.LocalRank
	case count > 0:
		d.index = id.LocalRank % count
		d.card = id.Visible.card(d.index)
		if mode == DeviceLocalRank {
			d.localRank = d.index
		}
		if id.LocalRank >= count {
			d.noteShared(id, mode)
		}
	}
	return d, nil
}

// noteShared adds a note about a local rank that is not a device index: a program that uses it as
// one fails with "invalid device ordinal".
func (d *device) noteShared(id Identity, mode DeviceMode) {
	rank, from, count := "LOCAL_RANK "+itoa(id.LocalRank), id.Visible.From(), id.Visible.Count()
	note := ""
	switch {
	case count > id.Visible.usable():
		note = rank + " shares the first MIG instance of " + from +
			": a process sees only that one; --device mask gives each worker its own"
	case mode == DeviceLocalRank && count == 1:
		return // each task has one device, and LOCAL_RANK is 0 as requested
	case count == 1:
		note = rank + " is not a device index: one device is visible (" + from +
			"); --device local-rank sets LOCAL_RANK to 0"
	default:
		note = rank + " shares device " + itoa(d.index) + ": " + itoa(count) +
			" devices are visible (" + from + "); " + id.ownDevices(count)
	}
	d.notes = append(d.notes, note)
}

// ownDevices says how each worker of this node gets a device of its own. Config.ProcsPerNode counts
// the workers of each of the launcher's tasks.
func (id Identity) ownDevices(count int) string {
	const own = " gives each worker its own"
	n := itoa(count)
	switch {
	case id.Tasks < 1:
		return "at most " + n + " workers on this node have their own"
	case id.Tasks <= count:
		return "--nproc-per-node " + itoa(count/id.Tasks) + own
	}
	start := map[Launcher]string{
		Slurm: "srun --ntasks-per-node " + n, SlurmPMI: "srun --ntasks-per-node " + n,
		OpenMPI4: "mpirun --map-by ppr:" + n + ":node", OpenMPI5: "mpirun --map-by ppr:" + n + ":node",
		Hydra: "mpiexec -ppn " + n, IntelMPI: "mpiexec -ppn " + n,
	}[id.Launcher]
	if start == "" {
		start = "a start with " + n + " tasks on each node"
	}
	if id.LocalWorldSize > id.Tasks {
		start += " with --nproc-per-node 1"
	}
	return start + own
}

// OnePerDevice is how many workers can have a device of their own in this mode.
func (d Devices) OnePerDevice(mode DeviceMode) int {
	if mode == DeviceMask || mode == DeviceVirtual {
		return d.Count()
	}
	return d.usable()
}

// OneWorker is a sentence about a node whose only worker sees several devices, "" if it does not.
func (d Devices) OneWorker() string {
	if d.Count() < 2 {
		return ""
	}
	each := "--nproc-per-node gpu"
	if d.usable() == 1 {
		each += " and --device mask"
	}
	return "1 worker on a node with " + itoa(d.Count()) + " devices (" + d.From() + "): " + each +
		" gives each device a worker; --nproc-per-node 1 says that one is meant"
}

// mask leaves one of the visible devices.
func (d device) mask(id Identity) (device, error) {
	visible, count := id.Visible, id.Visible.Count()
	if count == 0 {
		return d, nil
	}
	position := id.LocalRank % count
	name, value := visible.Variable, visible.Entries[position]
	switch name {
	case "":
		i := slices.IndexFunc(vendors, func(v vendor) bool { return v.name == visible.Vendor })
		name = vendors[i].layers[0][0]
	case "ASCEND_VISIBLE_DEVICES":
		// The container runtime has renumbered the devices.
		name, value = "ASCEND_RT_VISIBLE_DEVICES", itoa(position)
	case "HABANA_VISIBLE_DEVICES":
		return d, &Error{
			Text: "cannot mask " + visible.From() + ": it configures the container runtime " +
				"and does not name the modules in the container",
			Hint: "set HABANA_VISIBLE_MODULES, or use --device index",
		}
	}
	d.index, d.set, d.card = 0, []KV{{name, value}}, visible.card(position)
	if count > 1 && id.LocalRank >= count {
		d.notes = append(d.notes, "LOCAL_RANK "+itoa(id.LocalRank)+" shares device "+value+": "+
			itoa(count)+" devices are visible ("+visible.From()+")")
	}
	return d, nil
}

// card is a device as the kernel shows it.
type card struct {
	index   int    // selects it in the vendor's variables; Unknown if that is not known
	uuid    string // GPU-...; "" if unknown
	address string // of the PCI device, such as 0000:1b:00.0; "" if unknown
}

// Accessible is implemented by file systems that know whether this process may open a file. Slurm
// leaves all device files visible and lets a task open only its own.
type Accessible interface{ Accessible(name string) bool }

// selectCards returns the card of each entry: a number, DEVICE.TILE, a UUID or its beginning, or a
// MIG instance whose name contains its GPU's UUID (MIG-GPU-.../1/0).
func selectCards(entries []string, from []card) []card {
	cards := make([]card, len(entries))
	for i, entry := range entries {
		number, _, _ := strings.Cut(entry, ".")
		n, err := strconv.Atoi(number)
		uuid, _, _ := strings.Cut(strings.TrimPrefix(entry, "MIG-"), "/")
		var found []card
		for _, c := range from {
			switch {
			case err == nil && c.index == n,
				err != nil && len(uuid) > len("GPU-") && hasPrefixFold(c.uuid, uuid):
				found = append(found, c)
			}
		}
		if len(found) == 1 {
			cards[i] = found[0]
		}
	}
	return cards
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// inOrder numbers cards if their order is known.
func inOrder(cards []card, known bool) []card {
	for i := range cards {
		if cards[i].index = i; !known {
			cards[i].index = Unknown
		}
	}
	return cards
}

// unknownCards are n cards of which only the number is known.
func unknownCards(n int) []card { return inOrder(make([]card, n), false) }

func accessible(root fs.FS, name string) bool {
	files, ok := root.(Accessible)
	return !ok || files.Accessible(name)
}
