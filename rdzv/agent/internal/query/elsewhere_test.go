package query

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

// Agents are recognised in another network namespace, and nothing else is.
func TestElsewhere(t *testing.T) {
	proc := fstest.MapFS{"self/ns/net": {Data: []byte("net:[1]"), Mode: fs.ModeSymlink}}
	add := func(pid, uid int, name, args, network string) {
		dir := strconv.Itoa(pid)
		proc[dir] = &fstest.MapFile{
			Mode: fs.ModeDir | 0o555, Sys: &syscall.Stat_t{Uid: uint32(uid)},
		}
		stat := dir + " (" + name + ") S 1" + strings.Repeat(" 0", 30)
		proc[dir+"/stat"] = &fstest.MapFile{Data: []byte(stat)}
		args = strings.ReplaceAll(args, " ", "\x00")
		proc[dir+"/cmdline"] = &fstest.MapFile{Data: []byte(args)}
		proc[dir+"/ns/net"] = &fstest.MapFile{Data: []byte(network), Mode: fs.ModeSymlink}
	}
	add(7, 1000, "rdzv", "rdzv exec -- true", "net:[2]")
	add(8, 1000, "rdzv", "rdzv exec -- true", "net:[1]")
	add(9, 1001, "rdzv", "rdzv exec -- true", "net:[2]")
	add(10, 1000, "rdzv", "rdzv status", "net:[2]")
	add(11, 1000, "sh", "sh exec", "net:[2]")
	if got := Elsewhere(proc, 1000); !slices.Equal(got, []int{7}) {
		t.Errorf("got %v, want 7", got)
	}
}
