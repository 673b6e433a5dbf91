package envmap

import (
	"strconv"
	"strings"
)

// ProcsPerNode returns the number of workers that spec requests on this node: a number, "gpu" for
// one per visible device, "xpu", "npu" or "hpu" for one per visible device of Intel, Ascend or
// Gaudi, "cpu" for one per CPU, "auto" for devices if there are any and CPUs otherwise; "" is 1.
// devices is the result of Devices.CountFor(spec). A result below 1 or above limit is an error.
func ProcsPerNode(spec string, devices, cpus, limit int) (int, error) {
	n := devices
	switch spec {
	case "":
		return 1, nil
	case "gpu", "xpu", "npu", "hpu":
		if n < 1 {
			kind := ""
			if maker := makerOf(spec); maker != "" {
				kind = " of " + maker
			}
			return 0, &Error{
				Text: "cannot start one worker per " + strings.ToUpper(spec) + ": no device" + kind +
					" is visible",
				Hint: "--nproc-per-node auto starts one worker per CPU in this case",
			}
		}
	case "cpu":
		n = cpus
	case "auto":
		if n < 1 {
			n = cpus
		}
	default:
		var err error
		if n, err = strconv.Atoi(spec); err != nil {
			return 0, &Error{Text: "cannot read --nproc-per-node " + strconv.Quote(spec) +
				": not a number, auto, gpu, cpu, xpu, npu or hpu"}
		}
	}
	if n < 1 || n > limit {
		return 0, &Error{Text: "cannot start " + itoa(n) + " workers on a node " +
			"(--nproc-per-node " + spec + "): not 1 to " + itoa(limit)}
	}
	return n, nil
}

// CountFor is the number of devices that spec of ProcsPerNode asks for.
func (d Devices) CountFor(spec string) int {
	if maker := makerOf(spec); maker != "" && maker != d.Vendor {
		return 0
	}
	return d.Count()
}

// makerOf is the Devices.Vendor of the devices for which torch has a name (torch.xpu, torch.npu,
// torch.hpu); "" of all devices.
func makerOf(spec string) string {
	switch spec {
	case "xpu":
		return "intel"
	case "npu":
		return "ascend"
	case "hpu":
		return "habana"
	}
	return ""
}
