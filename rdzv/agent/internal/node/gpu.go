package node

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// gpu is an accelerator. A program that computes with it opens two files of /dev: its own, and that
// of the driver for this purpose.
type gpu struct{ model, address, file, compute string }

// gpus are facts about the accelerators of the node, also about those that this process may not
// use.
func (f Files) gpus(ctx context.Context) []Fact {
	gpus, driver := f.nvidia()
	if len(gpus) == 0 {
		gpus, driver = f.amd()
	}
	if len(gpus) == 0 {
		return nil
	}
	var models, nodes []string
	for _, g := range gpus {
		models = append(models, g.model)
		nodes = append(nodes, f.numaNode(g))
	}
	numa := Fact{Name: "GPU NUMA nodes", Value: strings.Join(nodes, " ")}
	if strings.Trim(numa.Value, "- ") == "" {
		numa.Value = "" // the machine has no NUMA nodes, or is virtual
	}
	facts := []Fact{
		{Name: "GPUs", Value: tally(models)}, {Name: "GPU driver", Value: driver}, f.links(gpus), numa,
	}
	if f.Processes {
		facts = append(facts, f.gpuProcesses(ctx, gpus))
	}
	return facts
}

// nvidia lists the GPUs of NVIDIA's driver, and its version.
func (f Files) nvidia() (gpus []gpu, driver string) {
	const dir = "proc/driver/nvidia"
	for _, address := range f.list(dir + "/gpus") {
		information := f.text(path.Join(dir, "gpus", address, "information"))
		file := "/dev/nvidia" + field(information, "Device Minor:")
		gpus = append(gpus, gpu{field(information, "Model:"), address, file, "/dev/nvidia-uvm"})
	}
	for word := range strings.FieldsSeq(field(f.text(dir+"/version"), "NVRM version:")) {
		if strings.Trim(word, "0123456789.") == "" && strings.Contains(word, ".") {
			return gpus, word
		}
	}
	return gpus, ""
}

// amd lists AMD's GPUs, which the kernel calls card0, card1 and so on.
func (f Files) amd() (gpus []gpu, driver string) {
	const dir = "sys/class/drm"
	for _, name := range f.list(dir) {
		number, isCard := strings.CutPrefix(name, "card")
		if _, err := strconv.Atoi(number); !isCard || err != nil {
			continue // a connector of a card, or a render node
		}
		device := path.Join(dir, name, "device")
		if f.text(device+"/vendor") != "0x1002" {
			continue
		}
		model := f.text(device + "/product_name")
		if model == "" {
			model = "AMD " + strings.TrimPrefix(f.text(device+"/device"), "0x")
		}
		address := field(f.text(device+"/uevent"), "PCI_SLOT_NAME=")
		gpus = append(gpus, gpu{model, address, f.renderFile(device), "/dev/kfd"})
	}
	return gpus, f.text("sys/module/amdgpu/version")
}

// renderFile is the file of /dev with which programs use a card's processors, not its outputs.
func (f Files) renderFile(device string) string {
	for _, name := range f.list(device + "/drm") {
		if strings.HasPrefix(name, "renderD") {
			return "/dev/dri/" + name
		}
	}
	return ""
}

func (g gpu) pci(name string) string { return path.Join("sys/bus/pci/devices", g.address, name) }

// numaNode is the NUMA node to which a GPU is attached, "-" if it is not known.
func (f Files) numaNode(g gpu) string {
	if n, err := strconv.Atoi(f.text(g.pci("numa_node"))); err == nil && n >= 0 {
		return strconv.Itoa(n)
	}
	return "-"
}

// links are the PCIe links of the GPUs. The present speed of a link is not compared with its
// maximum, because drivers lower it while a GPU is idle; its width remains.
func (f Files) links(gpus []gpu) Fact {
	fact := Fact{Name: "GPU links"}
	var links, narrow []string
	for _, g := range gpus {
		width, most := f.width(g, "current_link_width"), f.width(g, "max_link_width")
		if width == 0 || most == 0 {
			return Fact{} // virtual machines do not show links
		}
		speed, _, _ := strings.Cut(f.text(g.pci("max_link_speed")), " PCIe")
		link := strings.TrimSpace(fmt.Sprintf("PCIe x%d %s", width, speed))
		if width < most {
			link = fmt.Sprintf("PCIe x%d of x%d %s", width, most, speed)
			narrow = append(narrow, fmt.Sprintf("GPU %s uses x%d of x%d", g.address, width, most))
		}
		links = append(links, link)
	}
	fact.Value = tally(links)
	if len(narrow) > 0 {
		fact.Warning = "a PCIe link is narrower than it could be: " + strings.Join(narrow, ", ")
		fact.Hint = "transfers to this GPU are slower; let an administrator check its slot and card"
	}
	return fact
}

// width is the number of lanes of a link, 0 if it is not known.
func (f Files) width(g gpu, name string) int {
	n, err := strconv.Atoi(f.text(g.pci(name)))
	if err != nil || n > 32 {
		return 0
	}
	return n
}
