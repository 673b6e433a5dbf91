package integration

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An sshBed is hosts to which ssh logs in, with accounts and file systems of their own (testbed/sshd).
type sshBed struct {
	*cluster
	n int
}

// newSSHBed starts n hosts until the test ends, with options of `sshd up`.
func newSSHBed(t *testing.T, n int, options ...string) *sshBed {
	t.Helper()
	b := &sshBed{newCluster(t, n), n}
	if cache, err := filepath.Abs("../.cache"); err == nil && strings.HasPrefix(python, cache) {
		options = append(options, "--see", cache)
	}
	b.sshd(append([]string{"up"}, options...)...)
	return b
}

// sshd runs testbed/sshd and returns its output.
func (b *sshBed) sshd(args ...string) string {
	b.t.Helper()
	return b.sshdWith("", args...)
}

// sshdWith does the same with a text as stdin.
func (b *sshBed) sshdWith(stdin string, args ...string) string {
	b.t.Helper()
	line := b.command("sshd", args...)
	cmd := exec.Command(line[0], line[1:]...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &stderr
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("%q: %v\n%s%s", line, err, out, &stderr)
	}
	return string(out)
}

// as is the command line that runs argv on a host as a user who has logged in there.
func (b *sshBed) as(host int, user string, argv ...string) []string {
	return b.command("sshd", append([]string{"as", fmt.Sprint(host), user}, argv...)...)
}

// root runs a script as root on a host.
func (b *sshBed) root(host int, script string) string {
	b.t.Helper()
	return b.sshd("root", fmt.Sprint(host), "sh", "-c", script)
}

// write makes a file of the user "you" on a host, which is one of root's outside their home.
func (b *sshBed) write(host int, path, text string) {
	b.t.Helper()
	b.sshdWith(text, "root", fmt.Sprint(host), "sh", "-c",
		`cat > "$0"; case $0 in /home/you/*) chown you: "$0" ;; esac`, path)
}

// checkLeft fails the test if hosts still have processes or files that they did not have before,
// some time after a job has ended.
func (b *sshBed) checkLeft(t *testing.T) {
	t.Helper()
	var left string
	if !eventually(20*time.Second, func() bool {
		left = b.sshd("left")
		return left == ""
	}) {
		t.Errorf("left on the hosts:\n%s", left)
	}
}
