package manpage

import (
	"strings"

	"rdzv/cmd/rdzv/internal/flags"
)

// sections are those behind the commands, in the order of man-pages(7).
func sections(commands []flags.Command) string {
	var b strings.Builder
	section := func(title, before string, entries ...string) {
		b.WriteString(".SH \"" + title + "\"\n" + roff(before))
		for i := 0; i < len(entries); i += 2 {
			b.WriteString(entry(entries[i], entries[i+1]+"."))
		}
	}
	for _, c := range commands {
		if c.Name == "exec" {
			_, status := cutStatus(c.Prose)
			section("EXIT STATUS", strings.Replace(status, "Exit status", "That of rdzv exec", 1)+
				"\nThat of each other command is described with it.\n")
		}
	}
	section("ENVIRONMENT", `Each flag of rdzv exec has a variable: --join-timeout is RDZV_JOIN_TIMEOUT.
A flag overrides its variable, and both override the launcher.
rdzv exec sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT and others
for each worker; rdzv env prints them.

These variables have no flag:
`,
		"RDZV_TOKEN", "the token by which nodes prove that they belong to the same user",
		"RDZV_JOIN", "the address and the key in the command that a waiting node prints for the other "+
			"nodes",
		"RDZV_STORE_USER", "NAME:PASSWORD of a user of the etcd cluster that is the store",
		"ETCDCTL_USER, ETCDCTL_PASSWORD", "the same, if RDZV_STORE_USER is not set",
		"ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY", "the files of --store-ca, --store-cert and "+
			"--store-key, if these are not given",
		"RDZV_TERMINATION_LOG", "in a pod, the path of the termination log, or off",
		"XDG_RUNTIME_DIR, TMPDIR", "where the files of a running job are",
		"NO_COLOR", "no colours on a terminal",
	)
	section("FILES", "",
		"~/.config/rdzv/token", "the user's token, mode 0600; rdzv creates it when a job first needs it",
		"rdzv-UID", "in XDG_RUNTIME_DIR, TMPDIR or /tmp: the files of the store while a job runs",
		"DIR/RUN/attempt-N/rank-00003.log", "with --log-dir DIR: the output of rank 3. DIR/latest is a "+
			"link to DIR/RUN",
		"stall-K.txt, nccl_trace_rank_R", "beside the logs, when the job stalls: the stacks of all "+
			"ranks, and torch's record of NCCL operations",
		"FILE of --report", "how the job ended, as JSON; written at the end",
		"FILE of --events", "the events of the job, as JSON lines, appended",
		"/dev/termination-log", "in a pod: why the job failed",
	)
	section("EXAMPLES", `One worker for each GPU of this node:

    rdzv exec -- python3 main.py

One job of all tasks of a launcher:

    mpirun --hostfile hosts -np 4 rdzv exec -- python3 main.py
    srun -N2 --ntasks-per-node=8 rdzv exec -- python3 main.py

Two nodes without a launcher, the same command on both:

    rdzv exec --nodes 2 --store node1 -- python3 main.py

Restart the job up to three times, and keep the output of each rank:

    rdzv exec --max-restarts 3 --log-dir logs -- python3 main.py

Look for what would keep the job from running, before it runs:

    srun -N2 rdzv check -- python3 main.py

What do the ranks of a running job do, and where are they?

    rdzv status
    rdzv stacks
`)
	return b.String()
}

// cutStatus splits the help of a command before its exit status.
func cutStatus(help string) (rest, status string) {
	i := strings.Index(help, "\nExit status") + 1
	return help[:i], help[i:]
}

// entry is an entry of a list in the manual page.
func entry(name, text string) string {
	return ".TP\n.B " + roffQuoted.Replace(name) + "\n" + roffLines(text+"\n")
}
