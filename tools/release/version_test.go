package main

import (
	"os/exec"
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	for _, c := range []struct{ semantic, python, debian, tag string }{
		{"1.0.0", "1.0.0", "1.0.0", "1.0.0"},
		{"1.0.0-rc.1", "1.0.0rc1", "1.0.0~rc1", "1.0.0-rc.1"},
		{"1.2.0-alpha.10", "1.2.0a10", "1.2.0~alpha10", "1.2.0-alpha.10"},
		{"0.0.0-20260102030405-64c12bf1a2b3", "0.0.0.dev20260102030405",
			"0.0.0~dev20260102030405.64c12bf1a2b3", "0.0.0-20260102030405-64c12bf1a2b3"},
		{"1.0.1-0.20260102030405-64c12bf1a2b3+dirty", "1.0.1.dev20260102030405+dirty",
			"1.0.1~dev20260102030405.64c12bf1a2b3+dirty",
			"1.0.1-0.20260102030405-64c12bf1a2b3_dirty"},
		{"1.0.0-rc.1.0.20260102030405-64c12bf1a2b3", "1.0.0rc2.dev20260102030405",
			"1.0.0~rc1.dev20260102030405.64c12bf1a2b3", "1.0.0-rc.1.0.20260102030405-64c12bf1a2b3"},
	} {
		got, err := parseVersion(c.semantic)
		if want := (version{c.semantic, c.python, c.debian, c.tag}); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", c.semantic, got, err, want)
		}
	}
	for _, wrong := range []string{"", "devel", "v1.0.0", "1.0", "1.0.0-next", "1.0.0-20260102"} {
		if got, err := parseVersion(wrong); err == nil {
			t.Errorf("%q: no error, but %+v", wrong, got)
		}
	}
}

// dpkg sorts the versions of development between the releases.
func TestDebianOrder(t *testing.T) {
	order := strings.Fields("0.0.0-20260102030405-64c12bf1a2b3 1.0.0-rc.1 " +
		"1.0.0-rc.1.0.20260102030405-64c12bf1a2b3 1.0.0-rc.2 1.0.0 " +
		"1.0.1-0.20260102030405-64c12bf1a2b3 1.0.1")
	for i := range order[1:] {
		a, errA := parseVersion(order[i])
		b, errB := parseVersion(order[i+1])
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		cmd := exec.CommandContext(t.Context(), "dpkg", "--compare-versions", a.debian, "lt", b.debian)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s is not before %s: %v %s", a.debian, b.debian, err, out)
		}
	}
}
