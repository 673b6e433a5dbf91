package tasks

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Identity says which tasks can share an agent: those of the same job of a launcher, on the same
// node, with the same words and variables.
type Identity struct {
	// Job is the launcher's name of the job, or of the step in it.
	Job string
	// Node is the launcher's name of the node, for launchers that have several on one host; may
	// be "".
	Node string
	// Words are those of the command before the program.
	Words []string
	// Env is the environment, of which the variables that begin with RDZV_ count, except those
	// with secrets.
	Env []string
}

// prefix is how addresses begin; "@" stands for the byte 0.
const prefix = "@rdzv/node/"

// secrets are variables of which not even a hash is shown, as all users see addresses. Those that
// the workers get, or that run a command, count: tasks with different ones differ. Who knows all
// else that an address depends on can test a guess of them.
var secrets = []string{"RDZV_TOKEN=", "RDZV_STORE_USER=", "RDZV_JOIN="}

// Address is where the tasks with this identity meet. It is different for another user, another
// executable file, and other namespaces or another root directory. It is "" if these cannot be
// read.
func Address(id Identity) string {
	h := sha256.New()
	writeTexts(h, id.Job, id.Node)
	writeTexts(h, id.Words...)
	writeTexts(h, settings(id.Env)...)
	writeNumbers(h, uint64(os.Geteuid()))
	for _, name := range []string{"pid", "mnt", "net", "user"} {
		info, err := stat("/proc/self/ns/" + name)
		if err != nil {
			return ""
		}
		writeNumbers(h, info.Dev, info.Ino)
	}
	root, errRoot := stat("/")
	program, errProgram := stat("/proc/self/exe")
	if errRoot != nil || errProgram != nil {
		return ""
	}
	writeNumbers(h, root.Dev, root.Ino)
	writeNumbers(h, program.Dev, program.Ino, uint64(program.Size), uint64(program.Mtim.Nano()))
	return prefix + hex.EncodeToString(h.Sum(nil)[:16])
}

// settings are the variables that count, sorted.
func settings(env []string) (list []string) {
	for _, e := range env {
		isSecret := func(name string) bool { return strings.HasPrefix(e, name) }
		if strings.HasPrefix(e, "RDZV_") && !slices.ContainsFunc(secrets, isSecret) {
			list = append(list, e)
		}
	}
	slices.Sort(list)
	return list
}

func stat(name string) (info unix.Stat_t, err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Stat(name, &info)
	}
	return info, err
}

// writeTexts writes a list that cannot be taken for another one.
func writeTexts(h hash.Hash, list ...string) {
	writeNumbers(h, uint64(len(list)))
	for _, s := range list {
		writeNumbers(h, uint64(len(s)))
		h.Write([]byte(s))
	}
}

func writeNumbers(h hash.Hash, list ...uint64) {
	for _, n := range list {
		h.Write(binary.BigEndian.AppendUint64(nil, n))
	}
}
