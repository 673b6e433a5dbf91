package node

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"rdzv/internal/procfs"
)

// maxOpen is how many open files of a process are looked at, maxHolders how many processes are
// named.
const (
	maxOpen    = 4096
	maxHolders = 6
)

// A holder is a process that has opened GPUs, whose numbers are separated by commas.
type holder struct {
	procfs.Process
	gpus string
}

// gpuProcesses are the processes that hold GPUs, such as those that an earlier job has left, as far
// as this process may see what they have opened: all if it is root's, otherwise the user's own.
func (f Files) gpuProcesses(ctx context.Context, gpus []gpu) Fact {
	fact := Fact{Name: "GPU processes"}
	proc, err := fs.Sub(f.Root, "proc")
	if err != nil {
		return fact
	}
	holders, all := f.holders(ctx, proc, gpus)
	_, hidden := procfs.OpenFiles(proc, 1, 1)
	switch {
	case len(holders) > 0:
		fact.Value = holdersText(holders)
		fact.Warning = `other processes hold GPUs, see "GPU processes"`
		fact.Hint = "if an earlier job has left them there, end them: kill PID on their nodes"
	case all && hidden != nil:
		fact.Value = "none of this user"
	case all:
		fact.Value = "none"
	}
	return fact
}

// holders are the processes that hold GPUs. It has not seen all processes if ctx has ended before.
func (f Files) holders(ctx context.Context, proc fs.FS, gpus []gpu) (found []holder, all bool) {
	for _, name := range f.list("proc") {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue // not a process
		}
		if ctx.Err() != nil {
			return found, false
		}
		held := heldBy(proc, pid, gpus)
		if held == "" {
			continue
		}
		// Daemons of NVIDIA's driver, such as nvidia-persistenced, hold GPUs on purpose.
		p, err := procfs.Read(proc, pid)
		if err == nil && !strings.HasPrefix(p.Name, "nvidia-") {
			found = append(found, holder{p, held})
		}
	}
	return found, true
}

// heldBy are the GPUs that a process holds: it has opened their files, and that with which programs
// compute. Programs that only draw, or read sensors, have not opened the latter.
func heldBy(proc fs.FS, pid int, gpus []gpu) string {
	open, err := procfs.OpenFiles(proc, pid, maxOpen)
	if err != nil {
		return "" // another user's, or it has ended
	}
	var held []string
	for i, g := range gpus {
		if slices.Contains(open, g.file) && slices.Contains(open, g.compute) {
			held = append(held, strconv.Itoa(i))
		}
	}
	return strings.Join(held, ", ")
}

// holdersText is "GPU 3 is held by pid 4711 (python3)".
func holdersText(holders []holder) string {
	more := len(holders) - maxHolders
	var order []string
	by := map[string][]string{}
	for _, h := range holders[:min(len(holders), maxHolders)] {
		if by[h.gpus] == nil {
			order = append(order, h.gpus)
		}
		by[h.gpus] = append(by[h.gpus], fmt.Sprintf("pid %d (%s)", h.PID, h.Name))
	}
	for i, gpus := range order {
		are := "GPU " + gpus + " is"
		if strings.Contains(gpus, ",") {
			are = "GPUs " + gpus + " are"
		}
		order[i] = are + " held by " + strings.Join(by[gpus], ", ")
	}
	if more > 0 {
		order = append(order, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(order, "; ")
}
