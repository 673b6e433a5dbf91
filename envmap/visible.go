package envmap

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Devices are the accelerators that the launcher left to this process: never more than its variables allow.
// The zero value means that nothing is known: no variable, and no device file that this package knows.
type Devices struct {
	Vendor   string   // "nvidia", "amd", "intel", "ascend", "habana"; "" if none is known
	Variable string   // the variable that holds the list; "" if it was counted from device files
	Value    string   // that variable's value
	Entries  []string // what the process sees, in its order: numbers, UUIDs or MIG names
	Known    bool     // Entries tell: with none of them there is no device
	Note     string   // what the user should know of the list, "" if nothing
}

// Count is the number of devices.
func (d Devices) Count() int { return len(d.Entries) }

// From tells where the list was taken from, for messages.
func (d Devices) From() string {
	switch {
	case d.Variable != "":
		return d.Variable + "=" + d.Value
	case d.Known:
		return "device files of " + d.Vendor
	}
	return "no device variable and no device file"
}

// atOnce is the number of devices that one process can use: of several MIG instances CUDA shows a process only the
// first (documented: CUDA programming guide, MIG user guide).
func (d Devices) atOnce() int {
	if d.Count() > 1 && strings.HasPrefix(d.Entries[0], "MIG-") {
		return 1
	}
	return d.Count()
}

// vendor knows the variables of one make of devices. Layers are applied one on the other, each counting within what
// the one before left; of the names in a layer the first that is set counts.
type vendor struct {
	name   string
	layers [][]string
	mask   string // the variable to set where none is
	parse  func(string) (entries []string, all bool)
}

// The variables are documented by their vendors: CUDA C++ programming guide (CUDA_VISIBLE_DEVICES), ROCm "GPU isolation
// techniques" (ROCR before HIP; CUDA_VISIBLE_DEVICES is HIP's other name), oneAPI Level Zero specification
// (ZE_AFFINITY_MASK), CANN (ASCEND_RT_VISIBLE_DEVICES; ASCEND_VISIBLE_DEVICES is the container runtime's), Gaudi
// (HABANA_VISIBLE_MODULES; HABANA_VISIBLE_DEVICES is the container runtime's).
var vendors = []vendor{
	{"nvidia", [][]string{{"CUDA_VISIBLE_DEVICES"}}, "CUDA_VISIBLE_DEVICES", parseOrdinals},
	{"amd", [][]string{{"ROCR_VISIBLE_DEVICES"}, {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}}, "ROCR_VISIBLE_DEVICES", parseOrdinals},
	{"ascend", [][]string{{"ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES"}}, "ASCEND_RT_VISIBLE_DEVICES", parseNames},
	{"habana", [][]string{{"HABANA_VISIBLE_MODULES", "HABANA_VISIBLE_DEVICES"}}, "HABANA_VISIBLE_MODULES", parseNames},
	{"intel", [][]string{{"ZE_AFFINITY_MASK"}}, "ZE_AFFINITY_MASK", parseAffinity},
}

// VisibleDevices finds the devices of this process: from the visible-devices variables, and where none is set from the
// device files below root (the file system's root; nil looks at no files). Which vendor's variables count is decided
// by the device files; where these tell nothing, by the first variable that is set.
func VisibleDevices(env Env, root fs.FS) Devices {
	present, count := scan(root)
	for _, v := range vendors {
		if present == "" || v.name == present {
			if d, set := v.visible(env); set {
				return d
			}
		}
	}
	if present == "" {
		return Devices{}
	}
	return Devices{Vendor: present, Entries: ordinals(count), Known: true}
}

// visible applies the vendor's variables; set is false if there is none, or one that means all.
func (v vendor) visible(env Env) (Devices, bool) {
	var d Devices
	for _, layer := range v.layers {
		name, set := firstSet(env, layer)
		if !set {
			continue
		}
		entries, all := v.parse(env[name])
		if all {
			continue
		}
		if d.Known {
			entries, d.Note = d.within(entries, name+"="+env[name])
		}
		d = Devices{Vendor: v.name, Variable: name, Value: env[name], Entries: entries, Known: true, Note: d.Note}
	}
	return d, d.Known
}

// firstSet is Env.first for variables that mean something when empty: no device.
func firstSet(env Env, names []string) (string, bool) {
	for _, name := range names {
		if _, set := env[name]; set {
			return name, true
		}
	}
	return "", false
}

// within cuts a second list to what the first one left: its numbers count within that, and the first that does not
// exist there ends it. The note says so.
func (d Devices) within(entries []string, from string) (left []string, note string) {
	end := slices.IndexFunc(entries, func(entry string) bool {
		n, err := strconv.Atoi(entry)
		return err == nil && n >= d.Count()
	})
	if end < 0 {
		return entries, ""
	}
	return entries[:end], from + " counts within " + d.From() + ": " + strconv.Itoa(end) + " of " + strconv.Itoa(len(entries)) + " are left"
}

// parseOrdinals reads a list as CUDA does, and torch after it: numbers, or UUIDs (GPU-...), or MIG names; the first
// entry that is none (-1, NoDevFiles, void) ends it, and a list that names one twice is empty.
func parseOrdinals(list string) (entries []string, all bool) {
	kind := ""
	for field := range strings.SplitSeq(list, ",") {
		entry, k := ordinal(strings.TrimSpace(field))
		if k == "" || kind != "" && k != kind {
			break
		}
		if slices.Contains(entries, entry) {
			return nil, false
		}
		kind, entries = k, append(entries, entry)
	}
	return entries, false
}

// ordinal returns an entry and its kind; "" is no device.
func ordinal(field string) (entry, kind string) {
	for _, prefix := range []string{"GPU-", "MIG-"} {
		if strings.HasPrefix(field, prefix) {
			return field, prefix
		}
	}
	digits := strings.TrimPrefix(field, "+")
	end := 0
	for end < len(digits) && digits[end] >= '0' && digits[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(digits[:end])
	if err != nil {
		return "", ""
	}
	return strconv.Itoa(n), "number"
}

// parseNames reads a list of names or numbers with ranges (0-3).
func parseNames(list string) (entries []string, all bool) {
	if list == "all" {
		return nil, true
	}
	for field := range strings.SplitSeq(list, ",") {
		field = strings.TrimSpace(field)
		if field == "" || field == "void" || field == "none" || strings.HasPrefix(field, "-") {
			break
		}
		if entries = append(entries, expand(field)...); len(entries) > maxDevices {
			return entries[:maxDevices], false
		}
	}
	return entries, false
}

// expand turns "0-3" into its numbers; anything else is one name.
func expand(field string) []string {
	low, high, _ := strings.Cut(field, "-")
	a, errA := strconv.Atoi(low)
	b, errB := strconv.Atoi(high)
	if errA != nil || errB != nil || a < 0 || b < a || b >= maxDevices {
		return []string{field}
	}
	return ordinals(b + 1)[a:]
}

// maxDevices bounds the devices of one node.
const maxDevices = 1 << 10

// ordinals returns "0" to "n-1".
func ordinals(n int) []string {
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, strconv.Itoa(i))
	}
	return names
}

// parseAffinity reads ZE_AFFINITY_MASK: devices, or DEVICE.TILE; empty masks nothing.
func parseAffinity(list string) (entries []string, all bool) {
	for field := range strings.SplitSeq(list, ",") {
		field = strings.TrimSpace(field)
		if field == "" || strings.Trim(field, "0123456789.") != "" {
			break
		}
		entries = append(entries, field)
	}
	return entries, list == ""
}
