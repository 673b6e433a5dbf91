"""What a launcher costs that copies the output of a rank: to a file, and with a tag."""
import os
import shlex
import subprocess
import tempfile
from job import BENCH, PYTHON
from procs import cpu_ticks, free_port, job_tree, marked, name, now, signal_all

FULL, RATE = 200_000_000, 10_000_000    # bytes at full speed, and bytes per second
SLOW_SECONDS = 4


def launch(a, spec, dir, lines, job):
    """Starts the launcher with one rank that writes lines, and returns it with a pipe that has what
    it shows."""
    command = spec["copy"].format(
        rdzv=a.rdzv, python=PYTHON, bench=BENCH, torchrun=a.torchrun, port=free_port(), dir=dir,
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
        with launch(a, spec, dir, (line, FULL), job) as p:
            got, took = read(p.stdout.fileno())
        with launch(a, spec, dir, (line, SLOW_SECONDS * RATE, RATE), job) as p:
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
