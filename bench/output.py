"""What a launcher costs that copies the output of ranks: to a file, and with a tag."""
import os
import re
import shlex
import subprocess
import tempfile
from job import BENCH, PYTHON
from procs import cpu_ticks, free_port, job_tree, marked, name, now, signal_all

FULL, RATE = 200_000_000, 10_000_000    # bytes at full speed, and bytes per second
SLOW_SECONDS = 4
RELAYED = 100_000_000                   # bytes of all ranks at full speed, under Open MPI
BURST_LINES, BURST_RUNS = 60, 8
LINE = 80
# A line of child.c, after the tag of Open MPI or of rdzv. Each rank has a letter of its own.
WHOLE = re.compile(rb"^(?:\[[^]\n]*\](?:<stdout>:)? ?)?([a-z])\1{%d}\r?$" % (LINE - 2), re.MULTILINE)


def launch(a, template, dir, lines, job, ranks=1):
    """Starts the launcher with ranks that write lines, and returns it with a pipe that has what it
    shows."""
    command = template.format(
        rdzv=a.rdzv, python=PYTHON, bench=BENCH, torchrun=a.torchrun, port=free_port(), dir=dir, n=ranks,
        lines=shlex.join([a.child, dir, "lines", *map(str, lines)]))
    with open(f"{dir}/stderr", "wb") as errors:
        return subprocess.Popen(["sh", "-c", command], env=dict(os.environ, BENCH_JOB=job),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)


def read(fd, until=float("inf")):
    """Reads to the end, or until a time: the number of bytes, and the seconds after the first."""
    first, total = None, 0
    while now() < until and (n := len(os.read(fd, 1 << 17))):
        first, total = first or now(), total + n
    return total, now() - (first or now())


def m_output(a, spec, c):
    """how is the length of the lines. mb_per_s: how fast one rank can write. cpu_percent: of one
    core, by all processes of the job but the rank, while it writes 10 MB/s line by line."""
    job, line = f"b{os.getpid()}output", int(c["how"])
    with tempfile.TemporaryDirectory(prefix="bench-output-", dir=a.tmp) as dir:
        with launch(a, spec["copy"], dir, (line, FULL), job) as p:
            got, took = read(p.stdout.fileno())
        with launch(a, spec["copy"], dir, (line, SLOW_SECONDS * RATE, RATE), job) as p:
            os.read(p.stdout.fileno(), 1)
            ranks = [pid for pid in marked(job) if name(pid) == os.path.basename(a.child)[:15]]
            pids = job_tree([p.pid], ranks)
            ticks, start = cpu_ticks(pids), now()
            read(p.stdout.fileno(), start + SLOW_SECONDS - 1)
            ticks, seconds = cpu_ticks(pids) - ticks, now() - start
            read(p.stdout.fileno())
        signal_all(marked(job), 9)
    return dict(mb_per_s=round(FULL / took / 1e6), cpu_percent=round(ticks / seconds, 1),
                bad="" if got >= FULL and len(ranks) == 1 else f"{got} bytes, ranks {ranks}")


def relay(a, spec, ranks, bytes):
    """Each rank writes so many bytes of lines, as fast as it can. Returns the seconds from the first
    byte until the last, and how many lines are not shown as they are."""
    job, shown, times = f"b{os.getpid()}relay", [], []
    with tempfile.TemporaryDirectory(prefix="bench-relay-", dir=a.tmp) as dir:
        with launch(a, spec["relay"], dir, (LINE, bytes), job, ranks) as p:
            while block := os.read(p.stdout.fileno(), 1 << 17):
                shown.append(block)
                times.append(now())
        signal_all(marked(job), 9)
    whole = sum(1 for _ in WHOLE.finditer(b"".join(shown)))
    return times[-1] - times[0] if times else 0, ranks * bytes // LINE - whole


def m_relay(a, spec, c):
    """mb_per_s: how fast n ranks can write lines through the launcher. divided_percent: how many of
    the lines are divided by those of others. burst_divided: the same, a number of lines, when each
    rank writes only 60, as for the traceback of an exception, in 8 runs."""
    n = c["n"]
    bytes = RELAYED // n // LINE * LINE
    took, divided = relay(a, spec, n, bytes)
    bursts = [relay(a, spec, n, BURST_LINES * LINE)[1] for _ in range(BURST_RUNS)]
    nothing = divided == n * bytes // LINE or n * BURST_LINES in bursts
    return dict(mb_per_s=round(n * bytes / took / 1e6, 1) if took else None,
                divided_percent=round(100 * divided * LINE / (n * bytes), 2),
                burst_divided=sum(bursts), bad="no output" if nothing else "")
