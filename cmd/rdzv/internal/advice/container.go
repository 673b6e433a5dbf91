package advice

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// containerClients are the commands that let another process start a container, with what is then
// wrong. The program of apptainer, singularity, ch-run or enroot is a descendant and has the
// variables.
//
// Source: a container of docker (tried with 20.10.24) is a child of containerd's shim, as is one of
// nerdctl, as documented. One of podman is a child of conmon, which rdzv adopts and kills, but
// podman keeps its record of the container (tried with 4.3.1). podman-hpc executes podman
// (podman_hpc.py, call_podman and _shared_run). apptainer 1.4.5 and ch-run 0.31 were tried.
func containerClients() map[string]string {
	return map[string]string{
		"docker": outOfReach, "nerdctl": outOfReach, "podman": notTold, "podman-hpc": notTold,
	}
}

const (
	outOfReach = `what %q starts is not a descendant of rdzv: it keeps running if rdzv kills %s, ` +
		`and gets RANK and the like only by -e`
	notTold = `what %q starts gets RANK and the like only by -e, and if rdzv kills it, %s does not ` +
		`remove the container`
)

// Container is a warning if a program is the client of a container engine, such as "podman
// run", and the form of the command line that starts rdzv in the container instead; "" for other
// programs.
func Container(program []string) (warning, instead string) {
	client := filepath.Base(program[0])
	format, found := containerClients()[client]
	if !found {
		return "", ""
	}
	verb := clientVerb(program[1:])
	command, object := client+" "+verb, "IMAGE"
	switch verb {
	case "run", "shared-run":
	case "exec":
		object = "CONTAINER"
	default:
		return "", ""
	}
	return fmt.Sprintf(format, command, client), command + " ... " + object + " rdzv exec -- PROGRAM"
}

// clientVerb is the command among a client's arguments: its first word that is neither a flag nor
// perhaps the value of one, as DIR in "podman --root DIR run IMAGE".
func clientVerb(args []string) string {
	afterFlag := false
	for _, arg := range args {
		known := slices.Contains([]string{"run", "exec", "shared-run"}, arg)
		isFlag := strings.HasPrefix(arg, "-")
		if known || !isFlag && !afterFlag && arg != "container" {
			return arg
		}
		afterFlag = isFlag && !strings.Contains(arg, "=")
	}
	return ""
}
