"""What a launcher reports about the end of a job, and two jobs on one port."""
import os
import re
import signal
import socket
from fault import SIGNALS, aftermath, running
from job import BENCH, PYTHON, Job, live, rank
from procs import alive, now, signal_all


def m_exit(a, spec, c):
    """how = exit7 | segv | kill9 | term (one rank) | all0 | all7 | early0 (rank 0 exits 0, the
    others continue) | noexec (there is no such program)."""
    how = c["how"]
    if how == "noexec":
        with Job(a, spec, c, ["/nonexistent/program"]) as job:
            rc = job.returned(a.limit)
            return dict(rc=rc, launcher_s=round(now() - job.start, 3), tail=job.text()[-1500:],
                        bad="")
    code = 0 if how in ("all0", "early0") else 7
    with running(a, spec, c, "wait", code) as (job, rows), job.watch(rows) as w:
        start = now()
        if how in ("all0", "all7"):
            signal_all([r["pid"] for r in rows], signal.SIGUSR1)
            return aftermath(a, job, rows, w, start, rows)
        if how == "early0":
            return rank0_ends_early(a, job, rows, w)
        victim = rows[-2]
        os.kill(victim["pid"], SIGNALS[how])
        return aftermath(a, job, rows, w, start, [r for r in rows if r is not victim])


def rank0_ends_early(a, job, rows, w):
    start = now()
    os.kill(rows[0]["pid"], signal.SIGUSR1)
    w.until(job.launchers(), start + 8)
    left = live(rows[1:])
    signal_all([r["pid"] for r in left], signal.SIGUSR1)
    return dict(aftermath(a, job, rows, w, start, rows), others_alive_after_8s=len(left))


def judge(text, victim, total):
    """What the output says about the failure: whether its last 25 lines have the exception, and
    which ranks they name."""
    lines = [line for line in text.splitlines() if line.strip()]
    last = "\n".join(lines[-25:])
    boom = [i for i, line in enumerate(lines) if "boom:" in line and "raise" not in line]
    named = {int(x) for x in re.findall(r"(?i)\b(?:global_)?rank\W{0,12}(\d+)", last)}
    named = {x for x in named if x < total}
    named |= {int(x) for x in re.findall(r"Process name: \[\[\d+,\d+\],(\d+)\]", last)}  # Open MPI
    # torchrun prints a block on each node.
    blamed = [int(x) for x in re.findall(r"Root Cause.*?\brank\s*:\s*(\d+)", text, re.S)]
    return dict(lines=len(lines), tracebacks=text.count("Traceback (most recent"),
                boom_in_last_25="boom:" in last,
                boom_lines_from_end=len(lines) - 1 - boom[-1] if boom else None,
                ranks_named_in_last_25=sorted(named), names_victim=victim in named,
                root_cause_block=blamed)


def m_root(a, spec, c):
    """One rank raises an exception: how = light (without torch, the others sleep) | torch (the
    others fail after it, in gloo) | torchrec (the same under @record)."""
    total = c["n"] * c["nodes"]
    victim = total - 2
    if c["how"] == "light":
        child = [f"{BENCH}/raise_child.py", "{out}", str(total), str(victim)]
    else:
        mode = "raiserec" if c["how"] == "torchrec" else "raise"
        child = [f"{BENCH}/torch_child.py", "{out}", mode, str(victim)]
    with Job(a, spec, c, [PYTHON, *child]) as job:
        rc = job.returned(a.limit)
        text = job.text()
        return dict(judge(text, victim, total), rc=rc, victim=victim, tail=text[-6000:], bad="")


def m_port(a, spec, c):
    """The port that the job is told to use is taken: how = silent | job | cross."""
    one_node = dict(c, nodes=1)
    return dict(silent=port_of_a_silent_listener, job=port_of_another_job,
                cross=two_jobs_on_a_port)[c["how"]](a, spec, one_node)


def port_of_a_silent_listener(a, spec, c):
    """A listener that never answers has the port."""
    listeners = [socket.create_server(("0.0.0.0", port), backlog=64) for port in (a.port, 29400)]
    try:
        with Job(a, spec, c, [PYTHON, f"{BENCH}/torch_child.py", "{out}", "ok"], a.port) as job:
            rc = job.returned(a.limit)
            return dict(rc=rc, launcher_s=round(now() - job.start, 2),
                        reduced=len(job.files("torch")), tail=job.text()[-4000:], bad="")
    finally:
        for listener in listeners:
            listener.close()


def port_of_another_job(a, spec, c):
    """Another job of the same launcher was started with the same port before, and waits. What
    happens to the second job, and does it survive the normal end of the first one?"""
    child = [a.child, "{out}", "wait", "0"]
    with Job(a, spec, c, child, a.port) as first:
        first.wait_files("start", 30)
        with Job(a, spec, c, child, a.port) as job:
            job.wait_files("start", a.limit)
            rows = job.starts()
            result = dict(second_started=len(rows), second_rc=job.exit_codes(),
                          second_s=round(now() - job.start, 2),
                          second_check=job.check(rows) if rows else "-",
                          first_alive=len(live(first.starts())) == first.total)
            signal_all([r["pid"] for r in first.starts()], signal.SIGUSR1)
            result["first_rc"] = first.returned(20)
            if rows := job.starts():
                result |= survival(job, rows)
            return dict(result, tail=job.text()[-4000:], bad="")


def survival(job, rows):
    """How many of the children live for 20 s."""
    start = now()
    with job.watch(rows) as w:
        w.until([rank(r) for r in rows], start + 20)
    return dict(second_alive_20s_after_first_ended=len(live(rows)),
                second_lived_s=round(now() - start, 1))


def two_jobs_on_a_port(a, spec, c):
    """Two torch jobs with the same port start at the same moment. The ranks of one all_reduce 1,
    those of the other 100."""
    values = (1, 100)
    child = [PYTHON, f"{BENCH}/torch_child.py", "{out}", "value"]
    with (Job(a, spec, c, [*child, str(values[0])], a.port) as one,
          Job(a, spec, c, [*child, str(values[1])], a.port) as two):
        jobs = (one, two)
        rc = [j.returned(a.limit) for j in jobs]
        sums = [[int(words[5]) for words in j.files("torch")] for j in jobs]
        return dict(rc=rc, sums=sums, finished=sum(map(len, sums)),
                    crossed=sum(s != v * c["n"] for v, of_job in zip(values, sums) for s in of_job),
                    tail="".join(j.text()[-2000:] for j in jobs), bad="")
