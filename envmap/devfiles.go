package envmap

import (
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// nvidia returns the driver's GPUs (/proc/driver/nvidia/gpus/PCI/information) that have a device
// file which may be opened: in a container the driver may list all GPUs, and /dev only the allowed
// ones. Before the first use after boot /dev has none; then it returns the driver's list. CUDA
// numbers them by PCI address, but if models differ the fastest is 0, unless CUDA_DEVICE_ORDER says
// otherwise.
func nvidia(root fs.FS, env Env) []card {
	const dir = "proc/driver/nvidia/gpus"
	files := numbered(root, "dev", "nvidia")
	gpus, _ := fs.ReadDir(root, dir)
	models := map[string]bool{}
	var listed, present []card
	for _, gpu := range gpus {
		information := readText(root, dir+"/"+gpu.Name()+"/information")
		minor, err := strconv.Atoi(field(information, "Device Minor:"))
		if err != nil {
			continue
		}
		c := card{uuid: field(information, "GPU UUID:"), address: gpu.Name()}
		models[field(information, "Model:")] = true
		listed = append(listed, c)
		if files[minor] && accessible(root, "dev/nvidia"+itoa(minor)) {
			present = append(present, c)
		}
	}
	switch {
	case len(listed) == 0:
		return unknownCards(len(files))
	case len(files) == 0:
		present = listed
	}
	return inOrder(present, len(models) == 1 || env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID")
}

// amd returns the nodes of the kernel's topology that are GPUs and have a render device file. GPUs
// that a container may not use are unreadable or have no such file.
func amd(root fs.FS, _ Env) (cards []card) {
	const dir = "sys/class/kfd/kfd/topology/nodes"
	if _, err := fs.Stat(root, "dev/kfd"); err != nil {
		return nil
	}
	render := numbered(root, "dev/dri", "renderD")
	for _, node := range slices.Sorted(maps.Keys(numbered(root, dir, ""))) {
		properties := readText(root, dir+"/"+itoa(node)+"/properties")
		simd, _ := strconv.Atoi(field(properties, "simd_count"))
		minor, err := strconv.Atoi(field(properties, "drm_render_minor"))
		if simd == 0 || err == nil && !render[minor] {
			continue
		}
		id, _ := strconv.ParseUint(field(properties, "unique_id"), 10, 64)
		cards = append(cards, card{uuid: "GPU-" + hex(id, 16), address: kfdAddress(properties)})
	}
	return inOrder(cards, true)
}

// kfdAddress makes a PCI address of domain and location_id, whose bits 8 to 15 are the bus and 3 to
// 7 the device. (The highest ones number the partitions of a GPU.)
func kfdAddress(properties string) string {
	location, err := strconv.ParseUint(field(properties, "location_id"), 10, 32)
	if err != nil {
		return ""
	}
	domain, _ := strconv.ParseUint(field(properties, "domain"), 10, 32)
	bus, slot, function := location>>8&0xff, location>>3&0x1f, location&7
	return hex(domain, 4) + ":" + hex(bus, 2) + ":" + hex(slot, 2) + "." + hex(function, 1)
}

func hex(n uint64, width int) string {
	digits := strconv.FormatUint(n, 16)
	return strings.Repeat("0", max(0, width-len(digits))) + digits
}

func ascend(root fs.FS, _ Env) []card { return unknownCards(len(numbered(root, "dev", "davinci"))) }

func habana(root fs.FS, _ Env) []card {
	accel, hl := numbered(root, "dev/accel", "accel"), numbered(root, "dev", "hl")
	return unknownCards(max(len(accel), len(hl)))
}

// intel returns Intel's cards except the integrated graphics, which is always PCI device 00:02.0.
// Level Zero numbers them by PCI address; it may count each tile of a card as a device.
func intel(root fs.FS, _ Env) (cards []card) {
	const dir = "sys/class/drm"
	single := true
	for n := range numbered(root, dir, "card") {
		name := dir + "/card" + itoa(n)
		uevent := readText(root, name+"/device/uevent")
		integrated := strings.Contains(uevent, ":00:02.0\n")
		if strings.HasPrefix(field(uevent, "PCI_ID="), "8086:") && !integrated {
			cards = append(cards, card{address: field(uevent, "PCI_SLOT_NAME=")})
			gts, tiles := numbered(root, name+"/gt", "gt"), numbered(root, name+"/device", "tile")
			single = single && len(gts) <= 1 && len(tiles) <= 1
		}
	}
	slices.SortFunc(cards, func(a, b card) int { return strings.Compare(a.address, b.address) })
	return inOrder(cards, single)
}

// numbered returns the numbers N of the files prefixN in a directory.
func numbered(root fs.FS, dir, prefix string) map[int]bool {
	entries, _ := fs.ReadDir(root, dir)
	numbers := map[int]bool{}
	for _, entry := range entries {
		digits, ok := strings.CutPrefix(entry.Name(), prefix)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(digits, 10, 31); err == nil {
			numbers[int(n)] = true
		}
	}
	return numbers
}

// readText returns the content of a file, "" if it cannot be read.
func readText(root fs.FS, name string) string {
	content, _ := fs.ReadFile(root, name)
	return string(content)
}

// field returns the text after a key at the start of a line, "" if there is none.
func field(text, key string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}
