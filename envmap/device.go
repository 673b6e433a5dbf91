package envmap

import (
	"slices"
	"strconv"
	"strings"
)

// DeviceMode says how a worker gets its device.
type DeviceMode string

const (
	// DeviceIndex sets RDZV_DEVICE_INDEX to the index of the worker's device among the visible ones; the default.
	DeviceIndex DeviceMode = "index"
	// DeviceMask narrows the worker's visible devices to its one, whose index is then 0.
	DeviceMask DeviceMode = "mask"
	// DeviceLocalRank makes LOCAL_RANK the device's index, for programs that call set_device(LOCAL_RANK).
	DeviceLocalRank DeviceMode = "local-rank"
	// DeviceNone leaves devices alone.
	DeviceNone DeviceMode = "none"
)

// DeviceModes returns all modes, for help and messages.
func DeviceModes() []string {
	return []string{string(DeviceIndex), string(DeviceMask), string(DeviceLocalRank), string(DeviceNone)}
}

// device is what assign decided for one worker.
type device struct {
	index     int // among the visible; Unknown if there is none
	localRank int // the value for LOCAL_RANK
	set       []KV
	notes     []string
}

// assign gives a worker its device. One visible device has index 0 whatever the local rank is: the launcher gave each
// task its own (srun --gpus-per-task=1). Of several the local rank takes its own, and where there are too few they are shared in turn.
func assign(id Identity, mode DeviceMode) (device, error) {
	d := device{index: Unknown, localRank: id.LocalRank}
	if mode == "" {
		mode = DeviceIndex
	}
	if !slices.Contains(DeviceModes(), string(mode)) {
		return d, &Error{Text: "cannot use device mode " + strconv.Quote(string(mode)) + ": not one of " + strings.Join(DeviceModes(), ", ")}
	}
	if mode == DeviceNone {
		return d, nil
	}
	if id.Visible.Note != "" {
		d.notes = append(d.notes, id.Visible.Note)
	}
	if mode == DeviceMask {
		return d.mask(id)
	}
	count := id.Visible.atOnce()
	switch {
	case !id.Visible.Known:
		d.index = id.LocalRank
	case count > 0:
		d.index = id.LocalRank % count
		if mode == DeviceLocalRank {
			d.localRank = d.index
		}
		if id.LocalRank >= count {
			d.warn(id, mode)
		}
	}
	return d, nil
}

// warn tells of a local rank that is no device index: a program that uses it as one ends with "invalid device ordinal".
func (d *device) warn(id Identity, mode DeviceMode) {
	rank, visible, note := "LOCAL_RANK "+itoa(id.LocalRank), id.Visible, ""
	switch {
	case visible.Count() > visible.atOnce():
		note = rank + " shares MIG instance 0 of " + visible.From() + ": a process sees only the first; --device mask gives each worker its own"
	case mode == DeviceLocalRank && visible.Count() == 1:
		return // one device each, and LOCAL_RANK says so: just what was asked for
	case visible.Count() == 1:
		note = rank + " is no device index, for one device is visible (" + visible.From() + "): --device local-rank makes it 0"
	default:
		note = rank + " shares device " + itoa(d.index) + ", for " + itoa(visible.Count()) + " devices are visible (" + visible.From() + "): --nproc-per-node " + itoa(visible.Count()) + " gives each worker its own"
	}
	d.notes = append(d.notes, note)
}

// mask narrows the list to one entry of it.
func (d device) mask(id Identity) (device, error) {
	visible := id.Visible
	if visible.Count() == 0 {
		return d, nil
	}
	position := id.LocalRank % visible.Count()
	name, value, err := visible.narrow(position)
	if err != nil {
		return d, err
	}
	d.index, d.set = 0, []KV{{name, value}}
	if visible.Count() > 1 && id.LocalRank >= visible.Count() {
		d.notes = append(d.notes, "LOCAL_RANK "+itoa(id.LocalRank)+" shares device "+value+", for "+itoa(visible.Count())+" devices are visible ("+visible.From()+")")
	}
	return d, nil
}

// narrow returns the variable and value that leave one device.
func (d Devices) narrow(position int) (name, value string, err error) {
	i := slices.IndexFunc(vendors, func(v vendor) bool { return v.name == d.Vendor })
	switch d.Variable {
	case "":
		return vendors[i].mask, d.Entries[position], nil
	case "ASCEND_VISIBLE_DEVICES":
		// The container runtime has renumbered them.
		return vendors[i].mask, itoa(position), nil
	case "HABANA_VISIBLE_DEVICES":
		return "", "", &Error{Text: "cannot narrow " + d.From() + ": it is the container's, and does not tell the modules", Hint: "set HABANA_VISIBLE_MODULES, or use --device index"}
	}
	return d.Variable, d.Entries[position], nil
}
