package envmap

import (
	"io/fs"
	"strconv"
	"strings"
)

// nvidia counts the driver's GPUs (/proc/driver/nvidia/gpus/PCI/information) that have a device
// file: in a container the driver may list all GPUs, and /dev only the allowed ones. Before the
// first use after boot /dev has none; then it counts the driver's list.
func nvidia(root fs.FS) int {
	const dir = "proc/driver/nvidia/gpus"
	files := numbered(root, "dev", "nvidia")
	gpus, _ := fs.ReadDir(root, dir)
	listed, both := 0, 0
	for _, gpu := range gpus {
		information := readText(root, dir+"/"+gpu.Name()+"/information")
		if minor, err := strconv.Atoi(field(information, "Device Minor:")); err == nil {
			listed++
			if files[minor] {
				both++
			}
		}
	}
	switch {
	case listed == 0:
		return len(files)
	case len(files) == 0:
		return listed
	}
	return both
}

// amd counts the nodes of the kernel's topology that are GPUs and have a render device file. GPUs
// that a container may not use are unreadable or have no such file.
func amd(root fs.FS) int {
	const dir = "sys/class/kfd/kfd/topology/nodes"
	if _, err := fs.Stat(root, "dev/kfd"); err != nil {
		return 0
	}
	nodes, _ := fs.ReadDir(root, dir)
	render := numbered(root, "dev/dri", "renderD")
	count := 0
	for _, node := range nodes {
		properties := readText(root, dir+"/"+node.Name()+"/properties")
		simd, _ := strconv.Atoi(field(properties, "simd_count"))
		minor, err := strconv.Atoi(field(properties, "drm_render_minor"))
		if simd > 0 && (err != nil || render[minor]) {
			count++
		}
	}
	return count
}

func ascend(root fs.FS) int { return len(numbered(root, "dev", "davinci")) }

func habana(root fs.FS) int {
	return max(len(numbered(root, "dev/accel", "accel")), len(numbered(root, "dev", "hl")))
}

// intel counts Intel's cards except the integrated graphics, which is always PCI device 00:02.0.
func intel(root fs.FS) int {
	const dir = "sys/class/drm"
	count := 0
	for card := range numbered(root, dir, "card") {
		uevent := readText(root, dir+"/card"+itoa(card)+"/device/uevent")
		integrated := strings.Contains(uevent, ":00:02.0\n")
		if strings.HasPrefix(field(uevent, "PCI_ID="), "8086:") && !integrated {
			count++
		}
	}
	return count
}

// numbered returns the numbers N of the files prefixN in a directory.
func numbered(root fs.FS, dir, prefix string) map[int]bool {
	entries, _ := fs.ReadDir(root, dir)
	numbers := map[int]bool{}
	for _, entry := range entries {
		digits, ok := strings.CutPrefix(entry.Name(), prefix)
		if n, err := strconv.ParseUint(digits, 10, 31); ok && err == nil {
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
