package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	for _, c := range []struct{ semantic, python, distribution, tag string }{
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
		if want := (version{c.semantic, c.python, c.distribution, c.tag}); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", c.semantic, got, err, want)
		}
	}
	for _, wrong := range []string{"", "devel", "v1.0.0", "1.0", "1.0.0-next", "1.0.0-20260102"} {
		if got, err := parseVersion(wrong); err == nil {
			t.Errorf("%q: no error, but %+v", wrong, got)
		}
	}
}

// dpkg and rpm sort the versions of development between the releases.
func TestOrderOfVersions(t *testing.T) {
	t.Run("dpkg", func(t *testing.T) {
		wantSorted(t, func(a, b string) bool {
			cmd := exec.CommandContext(t.Context(), "dpkg", "--compare-versions", a, "lt", b)
			return cmd.Run() == nil
		})
	})
	t.Run("rpm", func(t *testing.T) {
		needRPM(t)
		wantSorted(t, func(a, b string) bool {
			out, err := exec.CommandContext(t.Context(), "rpm", "--eval",
				fmt.Sprintf("%%{lua: print(rpm.vercmp('%s', '%s'))}", a, b)).Output()
			return err == nil && string(out) == "-1\n"
		})
	})
}

func wantSorted(t *testing.T, less func(a, b string) bool) {
	t.Helper()
	order := strings.Fields("0.0.0-20260102030405-64c12bf1a2b3 1.0.0-rc.1 " +
		"1.0.0-rc.1.0.20260102030405-64c12bf1a2b3 1.0.0-rc.2 1.0.0 " +
		"1.0.1-0.20260102030405-64c12bf1a2b3 1.0.1")
	for i := range order[1:] {
		a, errA := parseVersion(order[i])
		b, errB := parseVersion(order[i+1])
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if !less(a.distribution, b.distribution) {
			t.Errorf("%s is not before %s", a.distribution, b.distribution)
		}
	}
}
