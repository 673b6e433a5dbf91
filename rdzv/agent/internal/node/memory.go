package node

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"rdzv/internal/cgroup"
)

// memory is the node's memory, or the smallest limit of this process's cgroups.
func (f Files) memory() Fact {
	kilobytes, _ := strconv.ParseUint(
		strings.TrimSuffix(field(f.text("proc/meminfo"), "MemTotal:"), " kB"), 10, 64)
	if kilobytes == 0 {
		return Fact{}
	}
	size, value := kilobytes<<10, bytesText(kilobytes<<10)
	for _, dir := range cgroup.Dirs(f.text("proc/self/cgroup"), "memory") {
		text := cmp.Or(f.text(dir+"/memory.max"), f.text(dir+"/memory.limit_in_bytes")) // version 2, 1
		if limit, err := strconv.ParseUint(text, 10, 64); err == nil && limit < size {
			size, value = limit, bytesText(limit)+" (cgroup limit)"
		}
	}
	return Fact{Name: "memory", Value: value}
}

// enoughShared is how much of /dev/shm should be free.
const enoughShared = 512 << 20

// sharedMemory is the size of /dev/shm.
func (f Files) sharedMemory() Fact {
	space, err := f.Space("/dev/shm")
	if err != nil {
		return Fact{
			Name: "/dev/shm", Value: "none", Warning: fmt.Sprintf("cannot use /dev/shm: %v", err),
			Hint: "mount a tmpfs at /dev/shm: data loaders and NCCL share memory there",
		}
	}
	fact := Fact{Name: "/dev/shm", Value: bytesText(space.Total)}
	if space.Free < enoughShared {
		fact.Value += ", " + bytesText(space.Free) + " free"
		fact.Warning = "/dev/shm has only " + bytesText(space.Free) + " free of " +
			bytesText(space.Total) + ": data loaders and NCCL share memory there"
		fact.Hint = "remove files that killed jobs have left in /dev/shm, or enlarge it: docker run " +
			"--shm-size 16g, or mount -o remount,size=16G /dev/shm"
	}
	return fact
}

// limits are the limits of the workers that often are too low.
func (f Files) limits(rdma bool) []Fact {
	text := f.text("proc/self/limits")
	soft := func(label string) string {
		value, _, _ := strings.Cut(field(text, label), " ")
		return value
	}
	files := Fact{Name: "open files"}
	if f.OpenFiles > 0 {
		files.Value = strconv.FormatUint(f.OpenFiles, 10)
	}
	locked := Fact{Name: "locked memory", Value: soft("Max locked memory")}
	if n, err := strconv.ParseUint(locked.Value, 10, 64); err == nil {
		locked.Value = bytesText(n)
		if rdma {
			locked.Warning = "the limit on locked memory is " + locked.Value +
				": InfiniBand needs it to be unlimited"
			locked.Hint = "ulimit -l unlimited, docker run --ulimit memlock=-1, or " +
				"LimitMEMLOCK=infinity for the service that starts the job"
		}
	}
	return []Fact{files, locked}
}
