#!/usr/bin/env python3
"""A small, complete training with DistributedDataParallel, written as for any launcher.

    mpirun -np 4 rdzv exec -- python3 examples/train.py

It reads torch's standard variables (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
MASTER_PORT). Of rdzv's variables it reads only RDZV_DEVICE_INDEX, if it is set. Rank 0 writes
--snapshot after every epoch; each run continues from it with --epochs more epochs, or, if --until is
given, until that epoch: what a restarted program (rdzv exec --max-restarts 3) should do.
"""
import argparse
import csv
import hashlib
import os
import socket
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

HERE = os.path.dirname(os.path.abspath(__file__))


def say(text):
    """Writes a line with one call, so that the lines of several ranks do not mix."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def arguments():
    parser = argparse.ArgumentParser(description="train a small model on spirals.csv")
    parser.add_argument("--epochs", type=int, default=10, 
                        help="epochs to train in this run (%(default)s)")
    parser.add_argument("--until", type=int, metavar="EPOCH",
                        help="stop after this epoch, counted from the first run")
    parser.add_argument("--batch", type=int, default=25,
                        help="rows per step and rank (%(default)s)")
    parser.add_argument("--snapshot", default="snapshot.pt", metavar="FILE",
                        help="continue from FILE if it exists, and write it (%(default)s)")
    parser.add_argument("--data", default=os.path.join(HERE, "spirals.csv"), metavar="FILE",
                        help="rows of x,y,arm (%(default)s)")
    return parser.parse_args()


def pick_device():
    """A GPU if every rank of this node can have its own, otherwise the CPU (NCCL does not support
    two ranks on one GPU).

    LOCAL_RANK, which programs for torchrun use, is not always the index of the GPU: with `srun
    --gpus-per-task=1` each rank sees a single GPU, and its index is 0. RDZV_DEVICE_INDEX is right
    in such cases too.
    """
    index = int(os.environ.get("RDZV_DEVICE_INDEX") or os.environ["LOCAL_RANK"])
    seen, needed = torch.cuda.device_count(), int(os.environ["LOCAL_WORLD_SIZE"])
    given_one = seen == 1 and "CUDA_VISIBLE_DEVICES" in os.environ
    if seen < needed and not given_one:
        return torch.device("cpu")
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def read(path):
    with open(path, newline="") as file:
        rows = [(float(r["x"]), float(r["y"]), int(r["arm"])) for r in csv.DictReader(file)]
    points = torch.tensor([(x, y) for x, y, _ in rows])
    return TensorDataset(points, torch.tensor([arm for _, _, arm in rows]))


def load(path, model, optimizer):
    """Restores the snapshot, if there is one. Rank 0 reads it and sends it to all others, because
    the file may exist only on its node. Returns the number of epochs so far."""
    found = [None]
    if dist.get_rank() == 0 and os.path.exists(path):
        found = [torch.load(path, map_location="cpu")]
    dist.broadcast_object_list(found, src=0)
    if found[0] is None:
        return 0
    model.load_state_dict(found[0]["model"])
    optimizer.load_state_dict(found[0]["optimizer"])
    return found[0]["epoch"]


def save(path, model, optimizer, epoch):
    """Writes a new file and renames it, so that a run that is stopped at any moment leaves the old
    snapshot or the new one, but no incomplete one."""
    new = path + ".new"
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    with open(new, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def train_epoch(model, optimizer, loader, sums):
    """One pass over this rank's share of the rows. Returns the mean loss and the proportion of
    right answers over all ranks."""
    loss_of = nn.CrossEntropyLoss()
    sums.zero_()  # loss, right answers, rows
    for points, arms in loader:
        points, arms = points.to(sums.device), arms.to(sums.device)
        answers = model(points)
        loss = loss_of(answers, arms)
        optimizer.zero_grad()
        loss.backward()  # DistributedDataParallel averages the gradients of all ranks here
        optimizer.step()
        right, rows = (answers.argmax(1) == arms).sum(), torch.tensor(len(arms)).to(sums)
        sums += torch.stack([loss.detach() * len(arms), right, rows])
    dist.all_reduce(sums)
    return (sums[0] / sums[2]).item(), (sums[1] / sums[2]).item()


def digests_of_all(net, device):
    """The SHA-256 of the parameters of every rank, by rank, and that of this one."""
    values = torch.cat([p.detach().flatten().cpu() for p in net.parameters()])
    digest = list(hashlib.sha256(values.numpy().tobytes()).digest())
    own = torch.tensor(digest, dtype=torch.uint8, device=device)
    digests = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(digests, own)
    return digests, own


def check_digests(digests, own):
    differing = [rank for rank, digest in enumerate(digests) if not torch.equal(digest, own)]
    if differing:
        raise SystemExit(f"rank {dist.get_rank()}: ranks {differing} have different parameters")
    if dist.get_rank() == 0:
        say(f"parameters {bytes(own.tolist()).hex()[:16]}: the same on all {len(digests)} ranks")


def main():
    args = arguments()
    device = pick_device()
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    say(f"rank {rank} of {size}: local rank {os.environ['LOCAL_RANK']} on {socket.gethostname()}, "
        f"{device}, {dist.get_backend()}")

    torch.manual_seed(1)  # the same initial parameters on every rank
    net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    net.to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    start = load(args.snapshot, net, optimizer)
    if rank == 0:
        say(f"continuing after epoch {start} of {args.snapshot}" if start
            else f"no {args.snapshot}: starting from the beginning")

    gpu = [device.index] if device.type == "cuda" else None
    model = DistributedDataParallel(net, device_ids=gpu)
    data = read(args.data)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=args.batch, sampler=sampler)
    sums = torch.zeros(3, device=device)
    last = start + args.epochs if args.until is None else args.until
    for epoch in range(start + 1, last + 1):
        sampler.set_epoch(epoch)
        loss, right = train_epoch(model, optimizer, loader, sums)
        if rank == 0:
            save(args.snapshot, net, optimizer, epoch)
            say(f"epoch {epoch}: loss {loss:.4f}, {right:.1%} right")

    digests, own = digests_of_all(net, device)
    check_digests(digests, own)
    # Destroy the group before the tensors that its threads used last (sums, digests, own) are
    # freed. In the other order torch 1.13 may hang: its thread needs Python's global lock to free
    # them, and destroy_process_group waits for that thread while it holds the lock.
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
