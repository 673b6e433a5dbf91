package login

import (
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// thisMachine is this machine's identity, as bootstrap.sh reports a host's.
func thisMachine() string {
	line := func(file string) string {
		text, _ := os.ReadFile(file)
		first, _, _ := strings.Cut(string(text), "\n")
		return strings.TrimSpace(first)
	}
	network, _ := os.Readlink("/proc/self/ns/net")
	var u unix.Utsname
	unix.Uname(&u)
	return machine(line("/etc/machine-id") + "/" + line("/proc/sys/kernel/random/boot_id") + "/" +
		network + "/" + unix.ByteSliceToString(u.Nodename[:]))
}

// machine is the identity of a machine: machine ID, boot ID, network namespace and name. Copied
// virtual machines can have the same machine ID, and containers on one machine the same boot ID.
// Without a boot ID it is "": nobody can tell.
func machine(reported string) string {
	if parts := strings.Split(reported, "/"); len(parts) != 4 || parts[1] == "" {
		return ""
	}
	return reported
}

// fits tells whether a host of a system and architecture, as uname prints them, can run this build.
func fits(system, arch string) bool {
	names := map[string][]string{"amd64": {"x86_64", "amd64"}, "arm64": {"aarch64", "arm64"}}
	known := names[runtime.GOARCH]
	return strings.EqualFold(system, runtime.GOOS) && (known == nil || slices.Contains(known, arch))
}

// architecture is that of this build, as uname prints it.
func architecture() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64"
	}
	return strings.Replace(runtime.GOARCH, "amd64", "x86_64", 1)
}
