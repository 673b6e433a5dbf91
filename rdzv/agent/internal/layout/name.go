package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/rdzv/agent/internal/launcher"
)

// Naming has the inputs of a job's name, see Name.
type Naming struct {
	Given     string   // by the user or the launcher; "" if it is not
	Argv      []string // of the program; empty if the nodes are checked
	Placement envmap.Placement
	Agents    int
	Env       envmap.Env
	InEtcd    bool // many jobs share the store
}

// Name is the job's name: the given one, the launcher's, or without a launcher one made of what is
// run and by whom, so that two different commands or users never meet. In an etcd cluster two runs
// of one command by a launcher must not meet either, nor two jobs of a platform, such as the groups
// of a LeaderWorkerSet, where multicast connects their pods.
//
// The tasks of one start of a launcher may run different programs. Where that start can be told
// from others, the name is made of it, and of no program.
func (n Naming) Name(proc fs.FS, pid int) (string, error) {
	if n.Given != "" {
		return n.Given, nil
	}
	var start string
	launched := n.Placement.Launcher != envmap.None
	inEtcd := n.InEtcd && launched
	if launched {
		start = launcher.StartedBy(n.Placement.Master, n.Env, proc, pid)
	}
	if inEtcd && start == "" {
		return "", hint.With(fmt.Errorf("cannot name the job in etcd: %s does not tell its agents apart "+
			"from those of other jobs", n.Placement.Launcher), "give each job its own --job NAME")
	}
	words := []string{strconv.Itoa(n.Agents), strconv.Itoa(os.Geteuid())}
	name := string(n.Placement.Launcher)
	if start == "" || !n.oneStart() {
		words, name = append(words, n.Argv...), "nodes" // without a program the nodes are checked
		if len(n.Argv) > 0 {
			name = filepath.Base(n.Argv[0])
		}
	}
	if start != "" {
		words = append(words, start)
	}
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return name + "-" + hex.EncodeToString(sum[:4]), nil
}

// oneStart tells whether what StartedBy returns is that of one start alone. On the nodes of a
// platform several jobs may run.
func (n Naming) oneStart() bool {
	return n.Placement.Platform == "" && (n.Placement.Master == "" || n.Env["MASTER_PORT"] != "")
}
