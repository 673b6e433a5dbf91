package cgroup

import (
	"strings"
	"testing"
)

func TestDirs(t *testing.T) {
	for list, want := range map[string]string{
		"":                                    "",
		"memory":                              "",
		"0::/\n":                              "sys/fs/cgroup",
		"0::/job/1":                           "sys/fs/cgroup/job/1 sys/fs/cgroup/job sys/fs/cgroup",
		"0::/../job":                          "sys/fs/cgroup/job sys/fs/cgroup",
		"8:pids:/\n4:cpu,memory:/a:b\n0::/\n": "sys/fs/cgroup/memory/a:b sys/fs/cgroup/memory",
		"0::/c\n4:memory:/a\n":                "sys/fs/cgroup/memory/a sys/fs/cgroup/memory",
		"8:pids:/\n1:name=systemd:/\n":        "",
	} {
		if got := strings.Join(Dirs(list, "memory"), " "); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}
