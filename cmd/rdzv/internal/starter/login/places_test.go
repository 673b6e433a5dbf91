package login

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Where the binary goes depends on what a host's directories permit. inside runs as root of a mount
// namespace of the host's own, in which /mnt is the host's directory, and /tmp and /run are empty.
func TestPlaces(t *testing.T) {
	if out, err := exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt").CombinedOutput(); err != nil {
		t.Skipf("no mount namespaces: %s", out)
	}
	const homeless = "HOME=/nonexistent; "
	for name, c := range map[string]struct{ inside, want, not string }{
		"home":                      {"", "/mnt/home/.cache/rdzv/", ""},
		"link for .cache":           {"mkdir /run/cache; ln -s /run/cache $HOME/.cache", "/mnt/home/.cache/rdzv/", ""},
		"no home":                   {homeless, "/tmp/rdzv-0/", ""},
		"no HOME":                   {"unset HOME", "/tmp/rdzv-0/", ""},
		"run directory":             {homeless + "export XDG_RUNTIME_DIR=/run", "/run/rdzv/", ""},
		"no such run directory":     {homeless + "export XDG_RUNTIME_DIR=/run/no", "/tmp/rdzv-0/", ""},
		"noexec home":               {"mount -t tmpfs -o noexec none $HOME", "/tmp/rdzv-0/", ""},
		"read-only home":            {"mount -t tmpfs none $HOME; mount -o remount,ro $HOME", "/tmp/rdzv-0/", ""},
		"small home":                {"mount -t tmpfs -o size=8k none $HOME", "/tmp/rdzv-0/", ""},
		"no more files":             {"mount -t tmpfs -o nr_inodes=3 none $HOME", "/tmp/rdzv-0/", ""},
		"others write to the cache": {"mkdir -p $HOME/.cache/rdzv; chmod 775 $HOME/.cache/rdzv", "/tmp/rdzv-0/", ""},
		"full without df's knowledge": {"mount -t tmpfs -o size=8k none $HOME; PATH=$FAKE/nodf:$PATH",
			"/tmp/rdzv-0/", ""},
		"planted link": {homeless + "mkdir /run/x; ln -s /run/x /tmp/rdzv-0",
			"", "/tmp/rdzv-0 is not a directory of this user"},
		"planted directory": {homeless + "mkdir /tmp/rdzv-0; chmod 777 /tmp/rdzv-0",
			"", "others can write to /tmp/rdzv-0"},
		"planted build": {homeless + "mkdir -m 700 /tmp/rdzv-0; ln -s /run /tmp/rdzv-0/BUILD",
			"", "/tmp/rdzv-0/BUILD is not a directory of this user"},
		"planted program": {homeless + "mkdir -p -m 700 /tmp/rdzv-0/BUILD; ln -s /bin/sh /tmp/rdzv-0/BUILD/rdzv",
			"/tmp/rdzv-0/", ""},
		"another user's directory": {homeless + "mkdir /tmp/rdzv-0; mount --bind /mnt/foreign /tmp/rdzv-0",
			"", "/tmp/rdzv-0 is not a directory of this user"},
		"read-only home, planted link": {"mount -t tmpfs none $HOME; mount -o remount,ro $HOME; ln -s /run /tmp/rdzv-0",
			"", "Read-only file system; /tmp/rdzv-0 is not"},
		"no room anywhere": {homeless + "mount -t tmpfs -o size=8k none /tmp",
			"", "/tmp/rdzv-0 has room for 8 KiB, and rdzv needs 8"},
		"nothing may run": {"mount -t tmpfs -o noexec none $HOME; mount -t tmpfs -o noexec none /tmp",
			"", "ermission denied"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.write("remote", remote+"exit\n"+incompressible())
			c.inside = strings.ReplaceAll(c.inside, "BUILD", f.build())
			c.not = strings.ReplaceAll(c.not, "BUILD", f.build())
			f.write("node1/foreign/"+f.build()+"/rdzv", "#!/bin/sh\n")
			if os.Getuid() == 0 {
				if err := os.Chown(f.dir+"/node1/foreign", 1234, 1234); err != nil {
					t.Fatal(err)
				}
			} else if strings.Contains(c.inside, "foreign") {
				t.Skip("only root makes files of others")
			}
			f.program("nodf/df", "#!/bin/sh\nexit 1")
			f.write("node1/inside", fmt.Sprintf("mount --bind $here /mnt; mount -t tmpfs none /run; "+
				"HOME=/mnt/home; mount -t tmpfs none /opt; cp -r $FAKE/bin $FAKE/nodf /opt; "+
				"export FAKE=/opt; PATH=/opt/bin:$PATH; mount -t tmpfs none /tmp; cd /; %s\n", c.inside))
			if c.want != "" {
				for _, s := range f.start(numbered(1)...) {
					if want := c.want + f.build() + "/rdzv"; s.Path != want {
						t.Errorf("rdzv is at %s, want %s", s.Path, want)
					}
				}
				return
			}
			failures := f.fails(numbered(1)...)
			if !strings.Contains(failures.Error(), "there is no place for rdzv: ") || !strings.Contains(failures.Error(), c.not) {
				t.Errorf("failures: %v; want %s", failures, c.not)
			}
		})
	}
}
