package integration

import (
	"fmt"
	"slices"
	"testing"
)

// bindingProgram prints the CPUs of a worker and the memory policy that it was started with
// (get_mempolicy(2); 1 is MPOL_PREFERRED). The runner, its parent, has the CPUs that the launcher
// allows.
const bindingProgram = `
import ctypes, glob, os, platform, sys
mode, mask = ctypes.c_int(), (ctypes.c_ulong * 16)()
call = {"x86_64": 239, "aarch64": 236}[platform.machine()]
assert ctypes.CDLL(None).syscall(call, ctypes.byref(mode), mask, 1025, 0, 0) == 0
own, allowed = os.sched_getaffinity(0), os.sched_getaffinity(os.getppid())

def cpus(node):
    ranges = [part.split("-") for part in open(node + "/cpulist").read().split(",") if part.strip()]
    return {cpu for r in ranges for cpu in range(int(r[0]), int(r[-1]) + 1)}

nodes = {int(node[len("/sys/devices/system/node/node"):]): cpus(node)
         for node in glob.glob("/sys/devices/system/node/node[0-9]*")}
used = [node for node in nodes if nodes[node] & own]
whole = own == allowed & set().union(*(nodes[node] for node in used))
prefers = [64 * word + bit for word in range(16) for bit in range(64) if mask[word] >> bit & 1]
sys.stdout.write(f"RANK {os.environ['RANK']} whole nodes: {whole}, policy {mode.value}, "
                 f"its node: {used == prefers}, one node: {len(used) == 1}\n")
`

// With --bind numa the workers have the CPUs and the memory of their NUMA nodes when they begin, as
// far as the launcher allows. Without it they have no memory policy.
func TestBindNUMA(t *testing.T) {
	var all []variant
	for _, row := range []struct {
		mode string
		want []string
	}{
		{"none", []string{
			"whole nodes: True, policy 0, its node: False, one node: True",
			"whole nodes: True, policy 0, its node: False, one node: False",
		}},
		{"numa", []string{
			"whole nodes: True, policy 1, its node: True, one node: True",
			"whole nodes: True, policy 0, its node: False, one node: False",
		}},
	} {
		all = append(all, underLaunchers(row.mode, func(t *testing.T, l launcher) {
			p := l.place(t)
			program := []string{debianPython, "-c", bindingProgram}
			job := p.start(l.command(p, 2, []string{"--bind", row.mode}, program)...)
			job.checkCode(0)
			for rank := range 2 {
				prefix := fmt.Sprintf("RANK %d ", rank)
				lines := job.linesWith(prefix)
				if len(lines) != 1 || !slices.Contains(row.want, lines[0][len(prefix):]) {
					t.Errorf("rank %d printed %q, want one of %q", rank, lines, row.want)
				}
			}
			if lines := job.linesWith("rdzv:"); len(lines) > 0 {
				t.Errorf("rdzv printed %q, want nothing", lines)
			}
		})...)
	}
	runInOrder(t, selected(all))
}
