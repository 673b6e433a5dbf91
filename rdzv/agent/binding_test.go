package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"rdzv/envmap"
	"rdzv/rdzv/agent"
)

// showsCPUs is a worker that prints how many CPUs it may use, the first of them, and its number of
// threads.
var showsCPUs = role("shows-cpus", func() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 2
	}
	fmt.Println(set.Count(), firstOf(&set), os.Getenv("OMP_NUM_THREADS"))
	return 0
})

func firstOf(set *unix.CPUSet) int {
	for cpu := range 8 * len(set) {
		if set.IsSet(cpu) {
			return cpu
		}
	}
	return -1
}

// Workers run on the CPUs of the NUMA node of their device. If they cannot, they run where the
// agent does, and that is reported.
func TestBindNUMA(t *testing.T) {
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		t.Fatal(err)
	}
	first, count := firstOf(&own), own.Count()
	for _, row := range []struct {
		name, allowed, output, note string
		verbose                     bool
	}{
		{
			"possible", fmt.Sprintf("%d,8000", first), fmt.Sprintf("1 %d 1\n", first),
			fmt.Sprintf("rank 0 is bound to NUMA node 1: CPU %d and memory "+
				"(its device 0000:1b:00.0)", first),
			true,
		},
		{
			"impossible", "8000", fmt.Sprintf("%d %d 1\n", count, first),
			"rank 0 is not bound: its " +
				"device 0000:1b:00.0 is on NUMA node 1, which has CPU " + strconv.Itoa(first) +
				", and the agent may use CPU 8000",
			false,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			stdout, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
			if err != nil {
				t.Fatal(err)
			}
			defer stdout.Close()
			c := config(t, showsCPUs, 1)
			c.Stdout, c.Bind = stdout, envmap.BindNUMA
			c.Root = hostWithGPU(strconv.Itoa(first), row.allowed)
			r := &recorder{t: t}
			result, err := r.run(t.Context(), c)
			checkCode(t, result, err, 0)
			if got, err := os.ReadFile(stdout.Name()); err != nil || string(got) != row.output {
				t.Errorf("the worker printed %q, %v; want %q", got, err, row.output)
			}
			want := agent.EnvironmentNote{Text: row.note, Verbose: row.verbose}
			if !slices.Contains(r.events, agent.Event(want)) {
				t.Errorf("events %+v, want %+v", r.events, want)
			}
		})
	}
}

// hostWithGPU is a host with one GPU, on the second of two NUMA nodes.
func hostWithGPU(cpus, allowed string) fstest.MapFS {
	root := fstest.MapFS{}
	for file, text := range map[string]string{
		"proc/self/status": "Cpus_allowed_list:\t" + allowed + "\n",
		"proc/driver/nvidia/gpus/0000:1b:00.0/information": "Device Minor: 0\n",
		"dev/nvidia0": "",
		"sys/bus/pci/devices/0000:1b:00.0/numa_node": "1\n",
		"sys/devices/system/cpu/online":              "0-8191\n",
		"sys/devices/system/node/has_memory":         "0-1\n",
		"sys/devices/system/node/node0/cpulist":      "8000\n",
		"sys/devices/system/node/node1/cpulist":      cpus + "\n",
	} {
		root[file] = &fstest.MapFile{Data: []byte(strings.TrimSpace(text))}
	}
	return root
}
