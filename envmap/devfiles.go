package envmap

import (
	"io/fs"
	"strconv"
	"strings"
)

// scan finds the vendor of the node's devices by their files, and how many this process may see. Integrated graphics
// are none: they come with every desktop processor.
func scan(root fs.FS) (vendor string, count int) {
	if root == nil {
		return "", 0
	}
	for _, s := range []struct {
		vendor string
		count  func(fs.FS) int
	}{
		{"nvidia", nvidia}, {"amd", amd}, {"ascend", ascend}, {"habana", habana}, {"intel", intel},
	} {
		if n := min(s.count(root), maxDevices); n > 0 {
			return s.vendor, n
		}
	}
	return "", 0
}

// nvidia counts the driver's GPUs (/proc/driver/nvidia/gpus/PCI/information) whose device file is there: in a container
// the driver may list all, and /dev only the allowed ones. Before the first use after boot /dev has none; then the
// driver's list counts.
func nvidia(root fs.FS) int {
	files := numbered(root, "dev", "nvidia")
	minors := nvidiaMinors(root)
	if len(minors) == 0 {
		return len(files)
	}
	count := 0
	for _, minor := range minors {
		if files[minor] {
			count++
		}
	}
	if len(files) == 0 {
		return len(minors)
	}
	return count
}

// nvidiaMinors returns the numbers of the driver's device files.
func nvidiaMinors(root fs.FS) []int {
	const dir = "proc/driver/nvidia/gpus"
	gpus, _ := fs.ReadDir(root, dir)
	var minors []int
	for _, gpu := range gpus {
		information, _ := fs.ReadFile(root, dir+"/"+gpu.Name()+"/information")
		if minor, ok := numberField(information, "Device Minor:"); ok {
			minors = append(minors, minor)
		}
	}
	return minors
}

// amd counts the nodes of the kernel's topology that are GPUs and whose render file is there; what a container may not
// use cannot be read, or has no file.
func amd(root fs.FS) int {
	const dir = "sys/class/kfd/kfd/topology/nodes"
	if _, err := fs.Stat(root, "dev/kfd"); err != nil {
		return 0
	}
	nodes, _ := fs.ReadDir(root, dir)
	render := numbered(root, "dev/dri", "renderD")
	count := 0
	for _, node := range nodes {
		properties, _ := fs.ReadFile(root, dir+"/"+node.Name()+"/properties")
		simd, _ := numberField(properties, "simd_count")
		minor, known := numberField(properties, "drm_render_minor")
		if simd > 0 && (!known || render[minor]) {
			count++
		}
	}
	return count
}

func ascend(root fs.FS) int { return len(numbered(root, "dev", "davinci")) }

func habana(root fs.FS) int {
	return max(len(numbered(root, "dev/accel", "accel")), len(numbered(root, "dev", "hl")))
}

// intel counts Intel's cards but for the processor's own graphics, which is PCI device 00:02.0 always.
func intel(root fs.FS) int {
	const dir = "sys/class/drm"
	count := 0
	for card := range numbered(root, dir, "card") {
		uevent, _ := fs.ReadFile(root, dir+"/card"+strconv.Itoa(card)+"/device/uevent")
		text := "\n" + string(uevent)
		if strings.Contains(text, "\nPCI_ID=8086:") && !strings.Contains(text, ":00:02.0\n") {
			count++
		}
	}
	return count
}

// numbered returns the numbers N of the files prefixN in a folder.
func numbered(root fs.FS, dir, prefix string) map[int]bool {
	entries, _ := fs.ReadDir(root, dir)
	numbers := map[int]bool{}
	for _, entry := range entries {
		if digits, ok := strings.CutPrefix(entry.Name(), prefix); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			if n, err := strconv.Atoi(digits); err == nil {
				numbers[n] = true
			}
		}
	}
	return numbers
}

// field returns what follows a key at the start of a line.
func field(text, key string) (string, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

// numberField is field for a number.
func numberField(text []byte, key string) (int, bool) {
	value, _ := field(string(text), key)
	n, err := strconv.Atoi(value)
	return n, err == nil
}
