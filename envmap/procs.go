package envmap

import "strconv"

// ProcsPerNode returns the number of workers that spec requests on this node: a number, "gpu" for
// one per visible device, "cpu" for one per CPU, "auto" for devices if there are any and CPUs
// otherwise; "" is 1. A result below 1 or above limit is an error.
func ProcsPerNode(spec string, devices, cpus, limit int) (int, error) {
	n := devices
	switch spec {
	case "":
		return 1, nil
	case "gpu":
		if n < 1 {
			return 0, &Error{
				Text: "cannot start one worker per GPU: no device is visible",
				Hint: "Config.ProcsPerNode auto starts one worker per CPU in this case",
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
			return 0, &Error{Text: "cannot read Config.ProcsPerNode " + strconv.Quote(spec) +
				": not a number, auto, gpu or cpu"}
		}
	}
	if n < 1 || n > limit {
		return 0, &Error{Text: "cannot start " + itoa(n) + " workers on a node " +
			"(Config.ProcsPerNode " + spec + "): not 1 to " + itoa(limit)}
	}
	return n, nil
}
