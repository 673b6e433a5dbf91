#!/usr/bin/python3
"""terminal.py FILE.svg: records a terminal on one of two hosts, and draws it. A job under mpirun
fails. Another one hangs, while rdzv status and rdzv stacks show where. All of it really runs: the
hosts are those of the tests, the program is terminal_train.py. It needs root and /tmp/you, the
directory of the user, which must not exist."""
import array
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

import pexpect
import pyte

from hosts import Hosts, TESTBED
from job import BENCH
from terminal_svg import draw

ROOT = os.path.dirname(BENCH)
HOME = "/tmp/you"
LINES, COLUMNS = 100, 100
PROMPT = "\x1b[1;36mnode1$\x1b[0m "
TRAIN = "mpirun --quiet --hostfile hosts -np 4 rdzv exec -- python3 train.py"
DAMAGED = f"{HOME}/data/part-2.f32"
LIMIT = 120  # seconds to wait for anything


def main(target):
    os.mkdir(HOME)
    tmp = tempfile.mkdtemp(prefix="terminal-")
    hosts = Hosts(tmp, slurm=False)
    try:
        prepare(f"{tmp}/bin")
        lines = record(hosts, f"{tmp}/bin")
    finally:
        hosts.down()
        shutil.rmtree(tmp)
        shutil.rmtree(HOME)
    with open(target, "w") as f:
        f.write(draw(lines, "Terminal: a job fails, and rdzv reports which rank failed first. "
                            "Another job hangs, and rdzv status and rdzv stacks name rank 2."))


def prepare(path):
    """Makes what the user has on both hosts: train.py, its data, and a directory of programs."""
    os.mkdir(path)
    os.mkdir(f"{HOME}/data")
    shutil.copy(f"{BENCH}/terminal_train.py", f"{HOME}/train.py")
    os.symlink(f"{ROOT}/bin/rdzv", f"{path}/rdzv")
    openmpi = subprocess.run([f"{ROOT}/scripts/openmpi"], stdout=subprocess.PIPE, text=True, check=True)
    os.symlink(shutil.which(openmpi.stdout.strip()), f"{path}/mpirun")
    with open(f"{HOME}/hosts", "w") as f:
        f.write("node1 slots=2\nnode2 slots=2\n")
    for rank in range(4):
        with open(f"{HOME}/data/part-{rank}.f32", "wb") as f:
            f.write(part(random.Random(rank), float("nan") if rank == 2 else 0).tobytes())
    with open(f"{path}/ssh", "w") as f:
        f.write(SSH.format(hosts=f"{TESTBED}/hosts", home=HOME, path=path))
    os.chmod(f"{path}/ssh", 0o700)


SSH = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1; shift
exec {hosts} rsh "$host" 'export HOME={home} PATH={path}:/usr/bin:/bin OMPI_ALLOW_RUN_AS_ROOT=1 \
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; cd {home};' "$@"
"""


def part(rng, damage):
    """Three steps of 64 rows: inputs, and as the target their sum and some noise."""
    data = array.array("f")
    for _ in range(3 * 64):
        inputs = [rng.gauss(0, 1) for _ in range(8)]
        data.extend(inputs + [sum(inputs) + rng.gauss(0, 0.1)])
    data[-1] += damage
    return data


def record(hosts, path):
    """Types the commands, and returns the lines of the screen, as pyte keeps them."""
    env = {"HOME": HOME, "PATH": f"{path}:/usr/bin:/bin", "TERM": "xterm-256color", "PS1": PROMPT,
           "LC_ALL": "C.UTF-8", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "OMPI_MCA_plm_rsh_agent": f"{path}/ssh", **hosts.env}
    line = ["env", "--chdir", HOME, "bash", "--norc", "--noprofile"]
    shell = Shell(hosts.on(0, line), env)
    shell.type(TRAIN)
    shell.type("")
    pipe = replace_by_pipe(DAMAGED)
    shell.type(f"{TRAIN} >log 2>&1 &")
    wait_for_text(f"{HOME}/log", "init_process_group")
    for command in "tail -n 2 log", "rdzv status", "rdzv stacks":
        shell.type(command)
    lines = [dict(shell.screen.buffer[row]) for row in range(shell.screen.cursor.y)]
    shell.type("rdzv stop; wait")
    os.close(pipe)
    return lines


def replace_by_pipe(name):
    """Whoever reads the pipe waits, as for a file server that does not respond."""
    os.remove(name)
    os.mkfifo(name)
    return os.open(name, os.O_RDWR)


def wait_for_text(name, text):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if os.path.exists(name):
            with open(name) as f:
                if text in f.read():
                    return
        time.sleep(0.1)
    sys.exit(f"cannot record: {name} does not contain {text!r} after {LIMIT} s")


class Shell:
    """A shell in a terminal."""

    def __init__(self, line, env):
        self.screen = pyte.Screen(COLUMNS, LINES)
        self.stream = pyte.Stream(self.screen)
        self.process = pexpect.spawn(line[0], line[1:], dimensions=(LINES, COLUMNS), cwd=HOME,
                                     env=env, encoding="utf-8", timeout=LIMIT)
        self.process.logfile_read = self
        self.process.expect_exact(PROMPT)

    def write(self, text):  # pexpect's logfile_read
        self.stream.feed(text)

    def flush(self):
        pass

    def type(self, text):
        """Types a line, and waits for the next prompt."""
        self.process.sendline(text)
        self.process.expect_exact(PROMPT)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
