"""train.py of the recording (terminal.py): a linear model learns from data/part-RANK.f32."""
import os
import time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

ROWS, COLUMNS = 64, 9  # of a step; 8 inputs and a target

name = f"data/part-{os.environ['RANK']}.f32"
with open(name, "rb") as f:
    data = torch.frombuffer(bytearray(f.read()), dtype=torch.float32).reshape(-1, ROWS, COLUMNS)

dist.init_process_group("gloo")
torch.manual_seed(1)
model = DistributedDataParallel(torch.nn.Linear(COLUMNS - 1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, rows in enumerate(data):
    if not rows.isfinite().all():
        raise ValueError(f"{name} is damaged at step {step}")
    time.sleep(1)  # a larger model would compute
    loss = torch.nn.functional.mse_loss(model(rows[:, :-1]), rows[:, -1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if dist.get_rank() == 0:
        print(f"step {step}: loss {loss.item():.3f}", flush=True)
