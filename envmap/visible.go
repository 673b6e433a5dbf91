package envmap

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Devices are the accelerators that this process may use, at most those that the launcher's
// variables allow. The zero value means that nothing is known: no variable is set, and there is no
// device file that this package knows.
type Devices struct {
	Vendor   string   // "nvidia", "amd", "intel", "ascend", "habana"; "" if unknown
	Variable string   // the variable that holds the list; "" if device files were counted
	Value    string   // that variable's value
	Entries  []string // the visible devices in their order: numbers, UUIDs or MIG names
	Known    bool     // Entries is valid; if it is empty there is no device
	Note     string   // a sentence about the list for the user, or ""

	cards []card // those of Entries, the zero value for what is not known
}

// Count is the number of devices.
func (d Devices) Count() int { return len(d.Entries) }

// EntryOf is the entry of the device that a local rank uses; "" if it is not known.
func (d Devices) EntryOf(localRank int) string {
	count := d.usable()
	if !d.Known || count == 0 || localRank < 0 {
		return ""
	}
	return d.Entries[localRank%count]
}

// card returns the i-th device; the zero value if nothing is known of it.
func (d Devices) card(i int) card {
	if i >= len(d.cards) {
		return card{}
	}
	return d.cards[i]
}

// From returns the source of the list, for messages.
func (d Devices) From() string {
	switch {
	case d.Variable != "":
		return d.Variable + "=" + d.Value
	case d.Known:
		return "device files of " + d.Vendor
	}
	return "no device variable and no device file"
}

// usable returns the number of devices that one process can use: of several MIG instances CUDA
// shows a process only the first (documented: CUDA programming guide, MIG user guide).
func (d Devices) usable() int {
	if d.Count() > 1 && strings.HasPrefix(d.Entries[0], "MIG-") {
		return 1
	}
	return d.Count()
}

// A vendor describes the variables of one make of devices. Each layer selects from the devices that
// the previous one left; of the names in a layer the first that is set counts. If none is set,
// DeviceMask sets the first.
type vendor struct {
	name   string
	cards  func(fs.FS, Env) []card // that this process can use, by their files
	layers [][]string
	parse  func(string) (entries []string, all bool)
}

// The variables are documented by their vendors: CUDA C++ programming guide (CUDA_VISIBLE_DEVICES),
// ROCm "GPU isolation techniques" (ROCR before HIP; HIP also reads CUDA_VISIBLE_DEVICES), oneAPI
// Level Zero specification (ZE_AFFINITY_MASK), CANN (ASCEND_RT_VISIBLE_DEVICES; the container
// runtime reads ASCEND_VISIBLE_DEVICES), Gaudi (HABANA_VISIBLE_MODULES; the container runtime reads
// HABANA_VISIBLE_DEVICES).
var vendors = []vendor{
	{"nvidia", nvidia, [][]string{{"CUDA_VISIBLE_DEVICES"}}, parseOrdinals},
	{"amd", amd, [][]string{
		{"ROCR_VISIBLE_DEVICES"}, {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
	}, parseOrdinals},
	{"ascend", ascend, [][]string{
		{"ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES"},
	}, parseNames},
	{"habana", habana, [][]string{
		{"HABANA_VISIBLE_MODULES", "HABANA_VISIBLE_DEVICES"},
	}, parseNames},
	{"intel", intel, [][]string{{"ZE_AFFINITY_MASK"}}, parseAffinity},
}

// VisibleDevices finds the devices of this process from the visible-devices variables, or if none
// is set from the device files below root (the root of the file system; nil means that no files are
// read). The device files determine which vendor's variables count; without any, the first variable
// that is set does.
func VisibleDevices(env Env, root fs.FS) Devices {
	candidates, counted := vendors, Devices{}
	var cards []card
	for i, v := range vendors {
		if root == nil || counted.Known {
			break
		}
		if cards = v.cards(root, env); len(cards) > 0 {
			candidates = vendors[i : i+1]
			entries := ordinals(min(len(cards), maxDevices))
			counted = Devices{
				Vendor: v.name, Entries: entries, Known: true, cards: selectCards(entries, cards),
			}
		}
	}
	for _, v := range candidates {
		if d := v.visible(env, cards); d.Known {
			return d
		}
	}
	return counted
}

// visible applies the vendor's variables. The devices are not known if none is set, or if they
// select all devices. An empty value has a meaning: no device.
func (v vendor) visible(env Env, cards []card) (d Devices) {
	for _, layer := range v.layers {
		i := slices.IndexFunc(layer, func(name string) bool { _, set := env[name]; return set })
		if i < 0 {
			continue
		}
		name, value := layer[i], env[layer[i]]
		entries, all := v.parse(value)
		if all {
			continue
		}
		note := ""
		if d.Known {
			entries, note = d.selectFrom(entries, name+"="+value)
		}
		selected := selectCards(entries, cards)
		d = Devices{
			Vendor: v.name, Variable: name, Value: value, Entries: entries, Known: true, Note: note,
			cards: selected,
		}
		cards = inOrder(slices.Clone(selected), true)
	}
	return d
}

// selectFrom applies a second list to d: its numbers are positions in d.Entries, and the first that
// is out of range ends it, with a note.
func (d Devices) selectFrom(entries []string, source string) (valid []string, note string) {
	end := slices.IndexFunc(entries, func(entry string) bool {
		n, err := strconv.Atoi(entry)
		return err == nil && n >= d.Count()
	})
	if end < 0 {
		return entries, ""
	}
	return entries[:end], source + " selects from " + d.From() + ": " +
		itoa(end) + " of " + itoa(len(entries)) + " entries are valid"
}

// parseOrdinals parses a list as CUDA and torch do: numbers, or UUIDs (GPU-...), or MIG names. The
// first invalid entry (-1, NoDevFiles, void) ends the list; a list with a duplicate is empty.
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

// ordinal returns an entry and its kind; the kind is "" if the field is not a device.
func ordinal(field string) (entry, kind string) {
	for _, prefix := range []string{"GPU-", "MIG-"} {
		if strings.HasPrefix(field, prefix) {
			return field, prefix
		}
	}
	digits := strings.TrimPrefix(field, "+")
	rest := strings.TrimLeft(digits, "0123456789")
	n, err := strconv.Atoi(strings.TrimSuffix(digits, rest))
	if err != nil {
		return "", ""
	}
	return itoa(n), "number"
}

// parseNames parses a list of names, numbers and ranges (0-3).
func parseNames(list string) (entries []string, all bool) {
	if list == "all" {
		return nil, true
	}
	for field := range strings.SplitSeq(list, ",") {
		field = strings.TrimSpace(field)
		if field == "" || field == "void" || field == "none" || strings.HasPrefix(field, "-") {
			break
		}
		low, high, _ := strings.Cut(field, "-")
		first, errFirst := strconv.Atoi(low)
		last, errLast := strconv.Atoi(high)
		if errFirst != nil || errLast != nil || last < first || last >= maxDevices {
			entries = append(entries, field)
		} else {
			entries = append(entries, ordinals(last + 1)[first:]...)
		}
		if len(entries) > maxDevices {
			return entries[:maxDevices], false
		}
	}
	return entries, false
}

// maxDevices is the largest number of devices of a node that is accepted.
const maxDevices = 1 << 10

// ordinals returns "0" to "n-1".
func ordinals(n int) []string {
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, itoa(i))
	}
	return names
}

// parseAffinity parses ZE_AFFINITY_MASK: devices, or DEVICE.TILE; an empty value selects all.
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
