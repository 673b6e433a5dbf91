// Package advice knows what to try about programs that cannot be run, or that fail at once.
package advice

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"rdzv/internal/shell"
	"rdzv/rdzv/agent/internal/postmortem"
	"rdzv/rdzv/masterport"
	"rdzv/wrap"
)

// OnProgram returns a suggestion if a program cannot be run because of err, which is an error of
// wrap.Find or of a wrap.Result; "" if none is known.
func OnProgram(err error, program []string) string {
	name := program[0]
	found, _ := errors.AsType[*wrap.FindError](err)
	switch {
	case errors.Is(err, wrap.ErrCarriageReturn):
		return `remove all with dos2unix, or sed -i 's/\r$//' ` + shell.Line(found.Path)
	case errors.Is(err, syscall.E2BIG):
		return "unset variables that the program does not need, or raise ulimit -s: " +
			"the kernel limits arguments and environment to a quarter of it, and to 6 MB"
	case errors.Is(err, syscall.EAGAIN):
		return "raise the limit of processes and threads (ulimit -u), or pids.max of the cgroup"
	case errors.Is(err, syscall.ENOEXEC):
		return "it is neither a binary nor a script that starts with #!: " +
			withInterpreter(name, program)
	case errors.Is(err, syscall.EACCES) && isFile(name) && unix.Access(name, unix.X_OK) != nil:
		return "chmod +x " + name + ", or " + withInterpreter(name, program)
	case errors.Is(err, syscall.ENOENT), strings.Contains(name, "/"), !isFile(name):
		return ""
	case filepath.Ext(name) == "":
		return "a file of that name is in this directory: rdzv exec -- ./" + shell.Line(program...)
	}
	return "a file of that name is in this directory: " + withInterpreter(name, program)
}

// OnStart returns a suggestion if a worker failed for this reason, or "" if none is known. python
// runs the program, "" if that is not known; port is MASTER_PORT; fixed tells whether it is that of
// --master-port.
func OnStart(f postmortem.Findings, python string, port int, fixed bool) string {
	switch module := f.MissingModule(); {
	case module != "" && python != "":
		return fmt.Sprintf("%s runs the program and does not find %s: "+
			"is the environment that has it active on this node?", python, module)
	case f.LacksLibuv():
		return "this torch is built without libuv: set USE_LIBUV=0; where the program itself " +
			"creates a TCPStore, pass use_libuv=False"
	case f.LacksOpenMPI():
		return "--as openmpi sets OMPI_COMM_WORLD_RANK and the like, as mpirun does"
	case !f.PortInUse(port):
		return ""
	case fixed:
		return fmt.Sprintf("MASTER_PORT is %d because of --master-port: "+
			"without it each job gets a free port", port)
	}
	return fmt.Sprintf("MASTER_PORT, %d, is for torch on rank 0: "+
		"for other servers use MASTER_PORT+1 to MASTER_PORT+%d", port, masterport.SparePorts)
}

// withInterpreter is the command that runs a script with the interpreter of its file name suffix.
func withInterpreter(name string, program []string) string {
	by := "python3"
	if filepath.Ext(name) == ".sh" {
		by = "sh"
	}
	return "rdzv exec -- " + by + " " + shell.Line(program...)
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
