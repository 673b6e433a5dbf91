package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fake is a release of small programs.
func fake() release {
	v, _ := parseVersion("1.0.0-rc.1")
	return release{
		version: v, commit: strings.Repeat("64c1", 10),
		time: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC),
		programs: []program{
			{"amd64", "", []byte("#!/bin/sh\necho amd64\n")},
			{"arm64", "", []byte("#!/bin/sh\necho arm64\n")},
		},
		texts:   texts{[]byte(".TH RDZV 1\n"), []byte("bash\n"), []byte("zsh\n"), []byte("fish\n")},
		licence: []byte("Apache\n"), others: []byte("MIT\n"), pages: []file{
			{"LICENSE", 0o644, []byte("Apache\n")}, {"README.md", 0o644, []byte("# rdzv\n")},
			{"docs/reference/files.md", 0o644, []byte("# Usage\n")},
		},
	}
}

// pack writes the packages of a fake release, except the bills of materials, which need real
// programs.
func pack(t *testing.T) (dist string) {
	t.Helper()
	dist = t.TempDir()
	g := toolchain{ctx: t.Context(), dir: dist, work: t.TempDir(), environ: os.Environ(),
		stderr: io.Discard}
	r := fake()
	for _, p := range r.programs {
		for _, write := range []func(release, program, string) error{
			writeArchive, writeWheel, g.writePackages,
		} {
			if err := write(r, p, dist); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := writeImage(r, dist); err != nil {
		t.Fatal(err)
	}
	if err := writeSums(dist, io.Discard); err != nil {
		t.Fatal(err)
	}
	return dist
}

// The packages are equal whatever the umask, the time zone and the time are, and are named as their
// readers expect it.
func TestPackagesAreEqual(t *testing.T) {
	first := pack(t)
	defer syscall.Umask(syscall.Umask(0o077))
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("SOURCE_DATE_EPOCH", "1")
	second := pack(t)

	want := []string{
		"SHA256SUMS",
		"rdzv-1.0.0rc1-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64." +
			"musllinux_1_1_aarch64.whl",
		"rdzv-1.0.0rc1-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64." +
			"musllinux_1_1_x86_64.whl",
		"rdzv-1.0.0~rc1-1.aarch64.rpm", "rdzv-1.0.0~rc1-1.x86_64.rpm",
		"rdzv_1.0.0-rc.1_linux_amd64.tar.gz", "rdzv_1.0.0-rc.1_linux_arm64.tar.gz",
		"rdzv_1.0.0-rc.1_oci.tar", "rdzv_1.0.0~rc1_amd64.deb", "rdzv_1.0.0~rc1_arm64.deb",
	}
	entries, err := os.ReadDir(first)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		a, errA := os.ReadFile(filepath.Join(first, e.Name()))
		b, errB := os.ReadFile(filepath.Join(second, e.Name()))
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("%s differs: %v %v", e.Name(), errA, errB)
		}
	}
	if !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = second
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != 9 {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
}

// What a package lists, as other programs see it: owner, mode, time and name of each file.
func TestListings(t *testing.T) {
	dist := pack(t)
	for _, c := range []struct {
		command []string
		want    []string
	}{
		{[]string{"tar", "--full-time", "--utc", "-tvzf", "rdzv_1.0.0-rc.1_linux_amd64.tar.gz"}, []string{
			"drwxr-xr-x 0/0 0 2026-01-02 03:04:06 rdzv_1.0.0-rc.1_linux_amd64/",
			"-rwxr-xr-x 0/0 21 2026-01-02 03:04:06 rdzv_1.0.0-rc.1_linux_amd64/bin/rdzv",
			"-rw-r--r-- 0/0 11 2026-01-02 03:04:06 " +
				"rdzv_1.0.0-rc.1_linux_amd64/share/man/man1/rdzv.1",
		}},
		{[]string{"dpkg-deb", "--contents", "rdzv_1.0.0~rc1_amd64.deb"}, []string{
			"-rwxr-xr-x root/root 21 2026-01-02 03:04 ./usr/bin/rdzv",
			"-rw-r--r-- root/root 370 2026-01-02 03:04 ./usr/share/doc/rdzv/copyright",
			"drwxr-xr-x root/root 0 2026-01-02 03:04 ./usr/share/man/man1/",
		}},
		{[]string{"dpkg-deb", "--field", "rdzv_1.0.0~rc1_arm64.deb"}, []string{
			"Version: 1.0.0~rc1", "Architecture: arm64", "Installed-Size: 0", "Section: science",
			"Description: run a PyTorch program as one distributed job under any launcher",
			"Under mpirun, mpiexec and srun, or without a launcher, it sets RANK,",
		}},
	} {
		cmd := exec.CommandContext(t.Context(), c.command[0], c.command[1:]...)
		cmd.Dir, cmd.Env = dist, append(os.Environ(), "TZ=UTC0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", c.command, err, out)
		}
		var lines []string
		for line := range strings.Lines(string(out)) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		for _, want := range c.want {
			if !slices.Contains(lines, want) {
				t.Errorf("%q: no line %q in\n%s", c.command, want, out)
			}
		}
	}
}

// needRPM skips a test without rpm, which reads .rpm packages; make test installs it.
func needRPM(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Skip("rpm is not installed")
	}
}

// All that an .rpm tells rpm: the directories that rpm removes with it; documentation (d), which
// --nodocs leaves out; and licences (l).
func TestListingOfRPM(t *testing.T) {
	needRPM(t)
	want := `rdzv-1.0.0~rc1-1.x86_64 localhost 1767323046 xz Apache-2.0 The rdzv authors
-rwxr-xr-x root root 1767323046 /usr/bin/rdzv
drwxr-xr-x root root 1767323046 /usr/share/bash-completion
drwxr-xr-x root root 1767323046 /usr/share/bash-completion/completions
-rw-r--r-- root root 1767323046 /usr/share/bash-completion/completions/rdzv
drwxr-xr-x root root 1767323046 /usr/share/doc/rdzv
-rw-r--r-- root root 1767323046 /usr/share/doc/rdzv/LICENSE l
-rw-r--r-- root root 1767323046 /usr/share/doc/rdzv/README.md d
-rw-r--r-- root root 1767323046 /usr/share/doc/rdzv/THIRD_PARTY_LICENSES l
drwxr-xr-x root root 1767323046 /usr/share/doc/rdzv/docs
drwxr-xr-x root root 1767323046 /usr/share/doc/rdzv/docs/reference
-rw-r--r-- root root 1767323046 /usr/share/doc/rdzv/docs/reference/files.md d
drwxr-xr-x root root 1767323046 /usr/share/fish
drwxr-xr-x root root 1767323046 /usr/share/fish/vendor_completions.d
-rw-r--r-- root root 1767323046 /usr/share/fish/vendor_completions.d/rdzv.fish
-rw-r--r-- root root 1767323046 /usr/share/man/man1/rdzv.1.gz d
drwxr-xr-x root root 1767323046 /usr/share/zsh
drwxr-xr-x root root 1767323046 /usr/share/zsh/site-functions
-rw-r--r-- root root 1767323046 /usr/share/zsh/site-functions/_rdzv
run a PyTorch program as one distributed job under any launcher
`
	cmd := exec.CommandContext(t.Context(), "rpm", "--query", "--queryformat",
		`%{NEVRA} %{BUILDHOST} %{BUILDTIME} %{PAYLOADCOMPRESSOR} %{LICENSE} %{PACKAGER}\n`+
			`[%{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME} %{FILEMTIMES} %{FILENAMES} `+
			`%{FILEFLAGS:fflags}\n]%{SUMMARY}\n`, "--package", "rdzv-1.0.0~rc1-1.x86_64.rpm")
	cmd.Dir = pack(t)
	out, err := cmd.CombinedOutput()
	if got := strings.ReplaceAll(string(out), " \n", "\n"); err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

// There is no release of a tree without a commit, or with a version that is not semantic.
func TestRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"semantic version": {"-version", "devel", "-commit", "64c1", "-epoch", "1"},
		"without a commit": {"-version", "1.0.0"},
		"not defined":      {"-vresion", "1.0.0"},
	} {
		err := run(t.Context(), args, nil, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}
