"""Runs a training program, unchanged, and interrupts its first attempt.

    atstep.py kill STEP PROGRAM   the last rank kills itself in this step of the optimizer
    atstep.py wait STEP PROGRAM   rank 0 stays in this step until it has handled a signal
"""
import os
import runpy
import signal
import sys

import torch

action, at, program = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rank, last = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]) - 1
step = torch.optim.SGD.step
steps = 0


def interrupted(*args, **kwargs):
    global steps
    steps += 1
    if steps == at and os.environ["RDZV_ATTEMPT"] == "0":
        if action == "kill" and rank == last:
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "wait" and rank == 0:
            wait_for_signal()
    return step(*args, **kwargs)


def wait_for_signal():
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write)  # Python writes the number of a signal that it handles
    print(f"waiting in step {steps}", flush=True)
    os.read(read, 1)


torch.optim.SGD.step = interrupted
runpy.run_path(program, run_name="__main__")
