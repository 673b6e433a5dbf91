"""torchrun, changed so that it starts with Debian's packages of PyTorch. Only what keeps it from
starting is replaced.

Debian 12 (torch 1.13): under Python 3.11 enums no longer iterate over Std.NONE, so Std.from_str
returns None and torchrun ends with an AttributeError.
Debian 13 (torch 2.6): static rendezvous always asks for a TCPStore with libuv, which this build
does not have. The ranks connect to the same store, see torch_child.py."""
import inspect
import os
import torch.distributed
from torch.distributed.elastic.multiprocessing import api

stock_from_str, StockStore = api.Std.from_str, torch.distributed.TCPStore


def from_str(text):
    std = stock_from_str(text)
    return api.Std(int(text)) if std is None else std


class Store(StockStore):
    def __init__(self, *args, **options):
        super().__init__(*args, **{**options, "use_libuv": False})


api.Std.from_str = from_str
if "use_libuv" in (inspect.getdoc(StockStore.__init__) or ""):
    torch.distributed.TCPStore = Store
    os.environ["USE_LIBUV"] = "0"
from torch.distributed.run import main
main()
