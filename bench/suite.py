#!/usr/bin/python3
"""suite.py [PART...]: what `make bench` does: every part (or those named) of the comparison with the peers, each with
bench.py, then the tables as Markdown into bin/performance.md. The runs themselves are left in bin/bench/PART.jsonl; a part
that is not run again keeps its table. Each part has its number of runs, so that all take about 20 minutes on two cores; REPS
in the environment is another for all of them."""
import datetime, os, platform, shutil, subprocess, sys

KIT = os.path.dirname(os.path.abspath(__file__))
BIN = f"{os.path.dirname(KIT)}/bin"
RUNS = f"{BIN}/bench"

TORCHRUN = "torchrun-static,torchrun-c10d,torchrun-tuned"
RDZV = "rdzv,rdzv-mpirun,rdzv-mpich,rdzv-srun"
PEERS = f"torchrun-tuned,openmpi,mpich,srun,{RDZV}"
ALL = f"torchrun-static,torchrun-c10d,{PEERS}"
AGAINST = "rdzv=torchrun-tuned,rdzv-mpirun=openmpi,rdzv-mpich=mpich,rdzv-srun=srun"


class Part:
    """bench: words of bench.py. tables: (title, figure, column) each. reps: how often each case is run."""
    def __init__(self, title, text, bench, tables, reps=3, against=AGAINST):
        self.title, self.text, self.bench, self.tables, self.reps, self.against = title, text, bench, tables, reps, against


PARTS = dict(
    latency=Part("Launch, one node", "From the start of the command until the last of N ranks runs its first instruction. With 32 ranks and more each lives 2 s.",
                 f"latency --n 2,4,16,64 --linger 1 --limit 30 --launchers {ALL}", [("seconds", "last_s", "n")], reps=5),
    latency2=Part("Launch, two hosts", "The same on two hosts of N/2 ranks each; the columns are the ranks of one host.",
                  f"latency --nodes 2 --n 1,2,8,32 --linger 1 --limit 30 --launchers torchrun-static,{PEERS}", [("seconds", "last_s", "n")]),
    torch=Part("First all_reduce with PyTorch", "From the start of the command until the last rank has done its first all_reduce over gloo, `import torch` included; and of that what follows the last import.",
               f"torch --n 2,4 --linger 1 --limit 60 --launchers {TORCHRUN},openmpi,mpich,srun,rdzv,rdzv-mpirun",
               [("seconds in all", "reduce_s", "n"), ("seconds after the last import", "init_s", "n")], reps=2),
    fail=Part("A worker is killed, one node", "From SIGKILL to one rank until all other ranks are gone. The ranks wait quietly: it is the launcher's doing alone.",
              f"fail --how kill9 --n 4,64 --limit 15 --launchers {ALL}",
              [("seconds until the others are gone", "children_s", "n"), ("seconds until the launcher has returned", "launcher_s", "n")]),
    fail2=Part("A worker is killed, two hosts", "The same on two hosts.",
               f"fail --nodes 2 --how kill9 --n 2,32 --limit 8 --launchers {PEERS}",
               [("seconds until the others are gone", "children_s", "n")]),
    tree=Part("What a worker leaves behind", "Each of 4 ranks has a descendant in a session of its own; one rank is killed, or exits with 1.",
              f"tree --how kill9,exit1 --mode grandsid --n 4 --limit 4 --settle 1 --launchers {PEERS}",
              [("seconds until the other ranks are gone", "children_s", "how"), ("seconds until all descendants are gone", "all_s", "how"),
               ("descendants left", "grand_left", "how")], reps=2),
    agent=Part("An agent is killed", "SIGKILL to the agent (torchrun's, mpirun, the proxy, slurmstepd, rdzv) of the last of 4 ranks.",
               f"agent --target agent --n 4 --limit 8 --launchers {PEERS}",
               [("seconds until all ranks are gone", "children_s", "n"), ("ranks left", "children_left", "n")], reps=2),
    cut=Part("A host is cut off", "The cable of one of two hosts is cut, and all on it ends. (The ssh between the hosts is a stand-in that dies with its host: what starts through it learns of the loss too soon.)",
             "agent --nodes 2 --target nodeloss --n 2 --limit 20 --launchers torchrun-tuned,rdzv,rdzv-mpirun", [("seconds until the ranks of the other are gone", "node0_s", "n")], reps=1),
    memory=Part("Memory and idleness", "The process tree of a quiet job without its ranks, over 3 s: launcher, agents, watchdogs and sentinels. \"One agent\" is the median over the launcher's processes, a watchdog and its sentinel counted with their agent; \"the largest\" is the host of the store, if it is not the launcher itself. Pages of a program are private too where one process alone has touched them: of a single agent, those of rdzv.",
                f"mem --n 4,64 --limit 30 --launchers {ALL}",
                [("private memory in all, kB", "private_kb", "n"), ("of one agent, kB", "typical_kb", "n"), ("of the largest, kB", "largest_kb", "n"),
                 ("threads", "threads", "n"), ("descriptors", "fds", "n"), ("CPU, ms a second", "idle_cpu_ms_per_s", "n"), ("wake-ups a second", "wakeups_per_s", "n")], reps=1, against=""),
    rank=Part("A rank for a script", "One command that prints a number, 20 times in a row each time.",
              "rank", [("seconds", "ask_s", "n")], reps=5, against="get-rank=python3,get-rank=mpi4py"),
)


def said(*argv):
    try:
        lines = subprocess.run(argv, capture_output=True, text=True).stdout.strip().splitlines()
        return lines[0].strip() if lines else "?"
    except FileNotFoundError:
        return "not there"


def field(path, name):
    with open(path) as f:
        return next((l.split(":", 1)[1].strip() for l in f if l.startswith(name)), "?")


def machine():
    os_release = dict(l.rstrip().split("=", 1) for l in open("/etc/os-release") if "=" in l)
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    return "\n".join([
        f"* {len(os.sched_getaffinity(0))} cores ({field('/proc/cpuinfo', 'model name')}), {int(field('/proc/meminfo', 'MemTotal').split()[0]) >> 20} GiB of memory",
        f"* Linux {platform.release().split('-')[0]}, {os_release['PRETTY_NAME'].strip(chr(34))}; load average {load} when the tables were made",
        f"* PyTorch {said('/usr/bin/python3', '-c', 'import torch; print(torch.__version__)')} on Python {said('/usr/bin/python3', '-c', 'import platform; print(platform.python_version())')}, "
        f"Open MPI {said('mpirun.openmpi', '--version').split()[-1]}, MPICH {said('sh', '-c', 'mpiexec.hydra --version | sed -n s/.*Version:.//p')}, {said('slurmd', '-V')}",
        f"* {said(f'{BIN}/rdzv', 'version')}, {os.path.getsize(f'{BIN}/rdzv') / 1e6:.1f} MB, {said('go', 'version')}",
        f"* {datetime.date.today()}; the one command: `make bench`",
    ])


def table(name, part, title, figure, column):
    words = [f"{KIT}/report.py", "--pivot", figure, "--by", column, "--title", title, "--against", part.against, f"{RUNS}/{name}.jsonl"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def report():
    text = ["### The machine\n", machine()]
    for name, part in PARTS.items():
        if os.path.exists(f"{RUNS}/{name}.jsonl"):
            text += [f"\n### {part.title}\n", part.text, ""]
            text += [table(name, part, *t) for t in part.tables]
    with open(f"{BIN}/performance.md", "w") as f:
        f.write("\n".join(text).rstrip() + "\n")
    shutil.copyfileobj(open(f"{BIN}/performance.md"), sys.stdout)


def main():
    names = sys.argv[1:] or list(PARTS)
    if unknown := [n for n in names if n not in PARTS]:
        sys.exit(f"suite.py: cannot find the part {unknown[0]!r}: there are {' '.join(PARTS)}")
    if os.geteuid() != 0:
        sys.exit("suite.py: needs root, for the two hosts")
    os.makedirs(RUNS, exist_ok=True)
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")    # mpi4py asks too
    for name in names:
        out, part = f"{RUNS}/{name}.jsonl", PARTS[name]
        open(out, "w").close()
        began = datetime.datetime.now()
        subprocess.run([f"{KIT}/bench.py", *part.bench.split(), "--reps", os.environ.get("REPS") or str(part.reps), "--out", out], check=True)
        print(f"-- {name}: {(datetime.datetime.now() - began).seconds} s", flush=True)
    report()


main()
