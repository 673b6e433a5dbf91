#!/usr/bin/python3
"""suite.py [PART...]: runs what `make bench` runs: all parts of the comparison with the peers, or
those named, each with bench.py. Then it writes the tables as Markdown to bin/performance.md.

The runs are kept in bin/bench/PART.jsonl; a part that is not run again keeps its table. The number
of runs of each part is chosen so that all parts take about half an hour on two cores; REPS in the
environment replaces it. ARGS in the environment are more options of bench.py; with --resume the
runs of the last time are kept."""
import datetime
import os
import platform
import shlex
import subprocess
import sys

BENCH = os.path.dirname(os.path.abspath(__file__))
BIN = f"{os.path.dirname(BENCH)}/bin"
RUNS = f"{BIN}/bench"
PYTHON = "/usr/bin/python3"

RDZV = "rdzv,rdzv-mpirun,rdzv-mpich,rdzv-srun"
PEERS = f"torchrun-tuned,openmpi,mpich,srun,{RDZV}"
ALL = f"torchrun-static,torchrun-c10d,{PEERS}"
AGAINST = "rdzv=torchrun-tuned,rdzv-mpirun=openmpi,rdzv-mpich=mpich,rdzv-srun=srun"

# Of the measure torch
FIRST = "torchrun-static,openmpi,rdzv,rdzv-mpirun,rdzv-srun"
FIRST_TABLES = [
    ("seconds in all", "reduce_s", "n", "--spread"),
    ("seconds after the last import", "init_s", "n", "--spread", "--fast", "torchrun-static"),
]
RESTART = [("seconds until all are restarted", "restart_s", "n"),
           ("seconds after the last old rank has ended", "after_s", "n")]
FIRST_AGAINST = "rdzv=torchrun-static,rdzv-mpirun=openmpi,rdzv-srun=torchrun-static"


class Part:
    """options: of bench.py. tables: title, figure and column of each, and options of report.py.
    reps: runs of each case."""

    def __init__(self, title, text, options, launchers, tables, reps=3, against=AGAINST):
        self.title, self.text, self.tables = title, text, tables
        self.options = options.split() + ["--launchers", launchers]
        self.reps, self.against = reps, against


PARTS = dict(
    latency=Part(
        "Launch, one node",
        "From the start of the command until the last of N ranks runs its first instruction. Jobs "
        "of 32 ranks and more live for 2 s.",
        "latency --n 2,4,16,64 --linger 1 --limit 30", ALL,
        [("seconds", "last_s", "n")], reps=5),
    latency2=Part(
        "Launch, two hosts",
        "The same on two hosts with N/2 ranks each; the columns are the ranks of one host.",
        "latency --nodes 2 --n 1,2,8,32 --linger 1 --limit 30", f"torchrun-static,{PEERS}",
        [("seconds", "last_s", "n")]),
    first=Part(
        "First all_reduce with PyTorch, one node",
        "From the start of the command until the last of N ranks has completed its first all_reduce "
        "over gloo, including `import torch`; and the part of it after the last import. Each cell "
        "has the smallest value, the quartiles and the largest value, and in parentheses how many "
        "starts took at most 0.1 s longer than the median of torchrun-static.",
        "torch --n 2,4,8,16 --linger 1 --limit 120 --minutes 4", FIRST, FIRST_TABLES, reps=20,
        against=FIRST_AGAINST),
    first2=Part(
        "First all_reduce with PyTorch, two hosts",
        "The same on two hosts with N/2 ranks each; the columns are the ranks of one host.",
        "torch --nodes 2 --n 1,2,4,8 --linger 1 --limit 120 --minutes 4", FIRST, FIRST_TABLES,
        reps=20, against=FIRST_AGAINST),
    fail=Part(
        "A worker is killed, one node",
        "From SIGKILL to one rank until all other ranks have ended. The ranks do not communicate, "
        "so that only the launcher can end them.",
        "fail --how kill9 --n 4,64 --limit 15", ALL,
        [("seconds until the others have ended", "children_s", "n"),
         ("seconds until the launcher has returned", "launcher_s", "n")]),
    fail2=Part(
        "A worker is killed, two hosts", "The same on two hosts.",
        "fail --nodes 2 --how kill9 --n 2,32 --limit 8", PEERS,
        [("seconds until the others have ended", "children_s", "n")]),
    restart=Part(
        "All workers are restarted, one node",
        "From SIGKILL to one of N ranks until the last of the N new ranks runs its first "
        "instruction, with --max-restarts 1; and the part of it after the last of the old ranks has "
        "ended. torchrun-tuned is torchrun with --monitor_interval 0.1.",
        "restart --n 8,64 --limit 60", "torchrun-c10d,torchrun-tuned,rdzv", RESTART, reps=5,
        against="rdzv=torchrun-tuned"),
    restart2=Part(
        "All workers are restarted, two hosts",
        "The same on two hosts with N/2 ranks each; the columns are the ranks of one host.",
        "restart --nodes 2 --n 4,32 --limit 60", "torchrun-c10d,torchrun-tuned,rdzv", RESTART,
        reps=5, against="rdzv=torchrun-tuned"),
    tree=Part(
        "Descendants of a worker",
        "Each of 4 ranks has a descendant in a session of its own; one rank is killed, or exits "
        "with 1.",
        "tree --how kill9,exit1 --mode grandsid --n 4 --limit 4 --settle 1", PEERS,
        [("seconds until the other ranks have ended", "children_s", "how"),
         ("seconds until all descendants have ended", "all_s", "how"),
         ("descendants left", "grand_left", "how")], reps=2),
    agent=Part(
        "An agent is killed",
        "SIGKILL to the agent of the last of 4 ranks: torchrun's, mpirun, the proxy, slurmstepd, "
        "rdzv.",
        "agent --target agent --n 4 --limit 8", PEERS,
        [("seconds until all ranks have ended", "children_s", "n"),
         ("ranks left", "children_left", "n")], reps=2),
    cut=Part(
        "A host is lost",
        "The link of one of two hosts is taken down, then all its processes are killed. (The "
        "program that replaces ssh between the hosts ends with its host, so launchers that use it "
        "learn of the loss too soon.)",
        "agent --nodes 2 --target nodeloss --n 2 --limit 20", "torchrun-tuned,rdzv,rdzv-mpirun",
        [("seconds until the ranks of the other host have ended", "node0_s", "n")], reps=1),
    memory=Part(
        "Memory and idle load",
        "All processes of a job except its ranks, over 3 s in which nothing happens: launcher, "
        "agents and runners. \"One agent\" is the median over the launcher's processes, with the "
        "runner counted as part of its agent; \"the largest\" is the host of the store, unless it "
        "is the launcher. Pages of a program count as private if only one process has used them, "
        "as those of rdzv if there is one agent.",
        "mem --n 4,64 --limit 30", ALL,
        [("private memory in all, kB", "private_kb", "n"),
         ("of one agent, kB", "typical_kb", "n"), ("of the largest, kB", "largest_kb", "n"),
         ("threads", "threads", "n"), ("descriptors", "fds", "n"),
         ("CPU, ms per second", "idle_cpu_ms_per_s", "n"),
         ("wake-ups per second", "wakeups_per_s", "n")], reps=1, against=""),
    output=Part(
        "Copying output",
        "One rank writes lines of 16, 80 and 4096 bytes, which are copied to a file and to a pipe. "
        "tee is `PROGRAM | tee FILE`, rdzv-tag is --tag --log-dir, rdzv-logdir --log-dir alone, "
        "torchrun-tee --tee 3 --log_dir, openmpi-tag --tag-output --output-filename, mpich-tag "
        "-prepend-rank with tee. The CPU time is that of all processes but the rank and the reader, "
        "while the rank writes 10 MB/s, each line with one write.",
        "output --limit 60", "tee,rdzv-tag,rdzv-logdir,torchrun-tee,openmpi-tag,mpich-tag",
        [("MB/s", "mb_per_s", "how"), ("CPU, % of one core at 10 MB/s", "cpu_percent", "how")],
        reps=2, against="rdzv-tag=tee"),
    relay=Part(
        "Output under Open MPI",
        "N ranks write lines of 80 bytes at full speed, 100 MB in all; and bursts: in 8 runs each "
        "rank writes 60 lines, as for the traceback of an exception. mpirun reads what a task "
        "writes in pieces of 4096 bytes; a line is divided if a piece ends inside it. mpirun-tag is "
        "--tag-output, rdzv-mpirun-tag --tag, rdzv-mpirun-logdir --log-dir, rdzv-mpirun-both both, "
        "rdzv-mpirun-node --tag with one task that starts all ranks.",
        "relay --n 1,4,16 --limit 60",
        "mpirun,mpirun-tag,rdzv-mpirun-tag,rdzv-mpirun-logdir,rdzv-mpirun-both,rdzv-mpirun-node",
        [("MB/s", "mb_per_s", "n"), ("divided lines, %", "divided_percent", "n"),
         ("divided lines of 480 N in bursts", "burst_divided", "n")],
        against="rdzv-mpirun-logdir=mpirun,rdzv-mpirun-tag=mpirun-tag,rdzv-mpirun-both=mpirun-tag,"
        "rdzv-mpirun-node=mpirun-tag"),
    ssh=Part(
        "Login with ssh",
        "From the start of the command until the first line of a rank, the last first line, and the "
        "end, with one rank on each of N hosts that only ssh reaches (those that live for 2 s: "
        "without this time). All hosts share the cores of this machine. openmpi-ssh is mpirun, "
        "rdzv-mpirun-ssh mpirun with rdzv exec, which are installed on all hosts; rdzv-hosts is "
        "--hosts after the first job, and rdzv-hosts-cold sends the binary to the hosts first.",
        "ssh --n 2,8,64 --limit 120", "openmpi-ssh,rdzv-mpirun-ssh,rdzv-hosts-cold,rdzv-hosts",
        [("seconds until the first line", "first_s", "n"),
         ("seconds until all have printed one", "last_s", "n"), ("seconds until the end", "end_s", "n")],
        reps=5, against="rdzv-hosts=rdzv-mpirun-ssh,rdzv-mpirun-ssh=openmpi-ssh"),
    rank=Part(
        "A rank for a script", "One command that prints a number, 20 times in a row per run.",
        "rank", "get-rank,python3,mpi4py",
        [("seconds", "ask_s", "n")], reps=5, against="get-rank=python3,get-rank=mpi4py"),
)


def first_line(*argv):
    """The first line that a command prints."""
    try:
        output = subprocess.run(argv, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return "not installed"
    return output.splitlines()[0].strip() if output else "?"


def field(path, name):
    with open(path) as f:
        return next((l.split(":", 1)[1].strip() for l in f if l.startswith(name)), "?")


def machine():
    """A description of this machine and of the versions that were compared."""
    with open("/etc/os-release") as f:
        os_release = dict(line.rstrip().split("=", 1) for line in f if "=" in line)
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    memory = int(field("/proc/meminfo", "MemTotal").split()[0]) >> 20
    torch = first_line(PYTHON, "-c", "import torch; print(torch.__version__)")
    python = first_line(PYTHON, "-c", "import platform; print(platform.python_version())")
    openmpi = first_line("mpirun.openmpi", "--version").split()[-1]
    mpich = first_line("sh", "-c", "mpiexec.hydra --version | sed -n s/.*Version:.//p")
    size = os.path.getsize(f"{BIN}/rdzv") / 1e6
    return "\n".join([
        f"* {len(os.sched_getaffinity(0))} cores ({field('/proc/cpuinfo', 'model name')}), "
        f"{memory} GiB of memory",
        f"* Linux {platform.release().split('-')[0]}, {os_release['PRETTY_NAME'].strip(chr(34))}; "
        f"load average {load} when the tables were made",
        f"* PyTorch {torch} on Python {python}, Open MPI {openmpi}, MPICH {mpich}, "
        f"{first_line('slurmd', '-V')}",
        f"* {first_line(f'{BIN}/rdzv', 'version')}, {size:.1f} MB, {first_line('go', 'version')}",
        f"* {datetime.date.today()}; made with `make bench`",
    ])


def table(runs, part, title, figure, column, *options):
    argv = [f"{BENCH}/report.py", "--pivot", figure, "--by", column, "--title", title, *options,
            "--against", part.against, runs]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def report():
    text = ["### The machine\n", machine()]
    for name, part in PARTS.items():
        runs = f"{RUNS}/{name}.jsonl"
        if os.path.exists(runs):
            text += [f"\n### {part.title}\n", part.text, ""]
            text += [table(runs, part, *t) for t in part.tables]
    return "\n".join(text).rstrip() + "\n"


def run(name, part):
    out, reps = f"{RUNS}/{name}.jsonl", os.environ.get("REPS") or str(part.reps)
    more = shlex.split(os.environ.get("ARGS", ""))
    if "--resume" not in more:
        open(out, "w").close()
    start = datetime.datetime.now()
    subprocess.run([f"{BENCH}/bench.py", *part.options, "--reps", reps, "--out", out, *more],
                   check=True)
    print(f"-- {name}: {(datetime.datetime.now() - start).seconds} s", flush=True)


def main():
    names = sys.argv[1:] or list(PARTS)
    if unknown := [n for n in names if n not in PARTS]:
        sys.exit(f"suite.py: unknown part {unknown[0]!r}; the parts are {' '.join(PARTS)}")
    if os.geteuid() != 0:
        sys.exit("suite.py: must run as root, because it sets up network namespaces")
    os.makedirs(RUNS, exist_ok=True)
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")  # for mpi4py
    for name in names:
        run(name, PARTS[name])
    text = report()
    with open(f"{BIN}/performance.md", "w") as f:
        f.write(text)
    print(text, end="")


main()
