package login

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// shells are login shells, and the file that each of them reads although it is not interactive.
var shells = []struct{ name, command, file string }{
	{"dash", "dash", ""},
	{"bash", "bash", ".bashrc"},
	{"rbash", "rbash", ".bashrc"},
	{"busybox", "busybox sh -c", ""},
	{"zsh", "zsh", ".zshenv"},
	{"fish", "fish", ".config/fish/config.fish"},
	{"tcsh", "tcsh", ".cshrc"},
	{"ksh", "ksh", ""},
	{"mksh", "mksh", ""},
}

// rdzv starts whatever the login shell is, and what its files do.
func TestLoginShells(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	for _, shell := range shells {
		if _, err := exec.LookPath(strings.Fields(shell.command)[0]); err != nil {
			t.Errorf("no %s: make test installs it", shell.name)
			continue
		}
		files := map[string]string{"nothing": ""}
		if shell.file != "" {
			files = map[string]string{
				"prints": "echo hello; printf 'no newline'; echo hello >&2",
				"waits":  "sleep 1",
				"leaves": "sleep 30 &",
			}
		}
		for does, text := range files {
			t.Run(shell.name+"/"+does, func(t *testing.T) {
				t.Parallel()
				f := newFake(t)
				f.write("node1/shell", shell.command+"\n")
				if shell.file != "" {
					f.write("node1/home/"+shell.file, "touch $FAKE/read\n"+text+"\n")
				}
				began := time.Now()
				sessions, err := All(t.Context(), numbered(1), f.Options)
				if err != nil {
					t.Fatal(err)
				}
				if does != "leaves" {
					f.talk(sessions[0]) // to the end of the output, which a process left behind has, too
				}
				f.close(sessions[0])
				if took := time.Since(began); took > 25*time.Second {
					t.Errorf("it took %v", took)
				}
				if _, err := exec.Command("test", "-e", f.dir+"/read").Output(); shell.file != "" && shell.name != "rbash" && err != nil {
					t.Errorf("%s has not read %s", shell.name, shell.file)
				}
			})
		}
	}
}

// A login file that takes all input, or that runs another shell, does not get what is for rdzv. It
// ends with the login.
func TestLoginFilesThatRead(t *testing.T) {
	for name, text := range map[string]string{
		"reads": "cat >$FAKE/taken\n",
		"fish":  "exec fish\n",
		"sh":    "exec sh 2>$FAKE/taken\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.Silence = 3 * time.Second
			f.write("node1/shell", "bash\n")
			f.write("node1/home/.bashrc", text)
			failures := f.fails(numbered(1)...)
			if !strings.HasPrefix(failures.Error(), "cannot reach node1: no answer for 3 s") {
				t.Errorf("failures: %v", failures)
			}
			if taken := strings.Join(f.lines("taken"), "\n"); taken != "" {
				t.Errorf("the login file got %q", taken)
			}
		})
	}
}

// busybox has all the commands that are used.
func TestBusybox(t *testing.T) {
	f := newFake(t)
	bin := f.dir + "/busybox"
	if err := exec.Command("sh", "-c", "mkdir "+bin+" && busybox --install -s "+bin).Run(); err != nil {
		t.Fatal(err)
	}
	f.write("node1/env", "PATH=$FAKE/bin:"+bin+"; export PATH")
	f.write("node1/shell", "sh\n")
	f.start(numbered(1)...)
	f.start(numbered(1)...)
}
