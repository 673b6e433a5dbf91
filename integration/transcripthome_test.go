package integration

import (
	"fmt"
	"os"
	"path/filepath"

	"rdzv/rdzv/secret"
)

// homeFiles are the files of the user whose commands the pages show. The programs write whole
// lines, because print writes the end of a line separately if PYTHONUNBUFFERED is set.
var homeFiles = map[string]string{
	"fail.py": `import glob, os, sys, time

rank = os.environ["RANK"]
sys.stdout.write(f"rank {rank} trains\n")
open(f"started{rank}", "w").close()
while rank != "2" or len(glob.glob("started*")) < 4:
    time.sleep(0.01)

raise ValueError("loss is nan")
`,
	"hello.py": `import os, sys

rank, size = os.environ["RANK"], os.environ["WORLD_SIZE"]
sys.stdout.write(f"rank {rank} of {size} on {os.uname().nodename}\n")
`,
	"stubborn.py": `import signal, sys, time

signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdout.write("trains\n")
time.sleep(1000)
`,
	"checkpoint.py": `import os, signal, sys, time

def stop(*_):
    sys.stdout.write(f"rank {os.environ['RANK']} has saved its state\n")
    sys.exit(0)

signal.signal(signal.SIGINT, stop)
signal.signal(signal.SIGTERM, stop)
sys.stdout.write(f"rank {os.environ['RANK']} trains\n")
time.sleep(1000)
`,
	"hosts": "node1 slots=2\nnode2 slots=2\n",
	// Everything else that make demo does in the repository is to install and to build.
	"Makefile": "demo:\n\t@scripts/demo\n",
}

// prepareHome makes the directory in which the user works, and one for rdzv that is in PATH only in
// the shell that the user works in. A shell of ssh has the system's PATH.
func (p *clusterPlace) prepareHome() {
	p.t.Helper()
	home, bin := p.dir("you"), p.dir("bin")
	for name, text := range homeFiles {
		p.write(filepath.Join(home, name), text, 0o600)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		p.t.Fatal(err)
	}
	links := map[string]string{
		filepath.Join(bin, "rdzv"):      *rdzvBin,
		filepath.Join(home, "bin"):      bin,
		filepath.Join(home, "scripts"):  filepath.Join(root, "scripts"),
		filepath.Join(home, "examples"): filepath.Join(root, "examples"),
	}
	for link, target := range links {
		if err := os.Symlink(target, link); err != nil {
			p.t.Fatal(err)
		}
	}
	// The user has run a job before, so that no agent says that it has created the token.
	p.dir("home")
	p.dir("home/.config")
	p.write(filepath.Join(p.dir("home/.config/rdzv"), "token"), secret.NewToken()+"\n", 0o600)
	// That of hosts rsh: with another python3 on node1 rdzv would warn of the difference.
	p.env = append(p.env, "PATH="+bin+":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
	p.write(filepath.Join(bin, "ssh"), p.shellIn(p.dir("home")), 0o700)
	p.env = append(p.env, "OMPI_MCA_plm_rsh_agent="+filepath.Join(bin, "ssh"))
}

// shellIn is the text of a program like ssh. The variables that it sets are those without which the
// test would not find its processes and files, and Open MPI would refuse to run as root.
func (p *clusterPlace) shellIn(home string) string {
	set := markName + "=" + p.mark + " HOME=" + home + " TMPDIR=" + p.dir("tmp") +
		" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
	return fmt.Sprintf(`#!/bin/sh
while :; do case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac; done
host=$1; shift
case $host in
node[12] | 10.*) ;;
*) echo "ssh: Could not resolve hostname $host: Name or service not known" >&2; exit 255 ;;
esac
exec %s "$host" 'export %s; cd %s;' "$@"
`, quoted(p.cluster.hostsCommand("rsh")), set, p.dir("you"))
}

func (p *place) write(path, text string, mode os.FileMode) {
	p.t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		p.t.Fatal(err)
	}
}
