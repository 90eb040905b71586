"""A pretended GPU: its tensors say pretended:0 and keep their numbers on the CPU.

What CUDA refuses is refused (two devices in one operation, an index on the device into a tensor that is not, NumPy of a
tensor on the device), and what makes the host wait or crosses between the two is counted. It sees every operation of
the thread that entered it; whoever computes on a device from other threads fails here, as launches from many threads
gain nothing there.
"""

import contextlib
import threading
from collections import Counter
from dataclasses import dataclass, field

import torch
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "pretended"
_setup_privateuseone_for_python_backend(NAME)  # torch's own place for devices that are written in Python
getattr(torch, NAME).get_amp_supported_dtype = lambda: [torch.bfloat16]  # asked for even where autocast is kept out
DEVICE = torch.device(f"{NAME}:0")

aten = torch.ops.aten
_MOVES = {aten._to_copy, aten.copy_}
_INDEXING = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_, aten._unsafe_index}
# Whose result has a size that the host must wait for.
_SIZED_BY_VALUES = {
    aten.nonzero,
    aten.masked_select,
    aten.bincount,
    aten._unique2,
    aten.unique_dim,
    aten.unique_consecutive,
    aten.repeat_interleave,
    aten.equal,
}


class Pretended(torch.Tensor):
    """A tensor of the pretended device; `numbers` are on the CPU."""

    @staticmethod
    def __new__(cls, numbers: torch.Tensor):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            numbers.size(),
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=DEVICE,
        )
        made.numbers = numbers
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError(f"{func} of a pretended tensor outside its device, or in another thread")

    def tolist(self):
        """Torch has no such method of a subclass; one copy down, as on the real device."""
        return self.cpu().tolist()

    def numpy(self, **_):
        """Refused, as on the real device."""
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")

    def __repr__(self):
        return f"Pretended({tuple(self.shape)}, {self.dtype})"


@dataclass
class Traffic:
    """How often the host waited for a value, and how often tensors went up to the device and down from it."""

    waits: int = 0
    up: int = 0
    down: int = 0
    operations: Counter = field(default_factory=Counter)

    def clear(self) -> None:
        """Count from nothing."""
        self.waits = self.up = self.down = 0
        self.operations.clear()


class _Device(TorchDispatchMode):
    def __init__(self, traffic: Traffic):
        super().__init__()
        self.traffic = traffic

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        packet, leaves = func.overloadpacket, tree_leaves((args, kwargs))
        here = [one for one in leaves if isinstance(one, Pretended)]
        asked = kwargs.get("device")
        if not here and (asked is None or torch.device(asked).type != NAME):
            return func(*args, **kwargs)
        if func is torch.ops.prim.device.default:
            return DEVICE
        self.traffic.operations[str(packet)] += 1
        if packet not in _MOVES:
            self._refuse_mixes(packet, func, args, leaves)
        if packet in _SIZED_BY_VALUES or packet is aten._local_scalar_dense:
            self.traffic.waits += 1
        if packet in _INDEXING and any(one.dtype == torch.bool for one in tree_leaves(args[1]) if one is not None):
            self.traffic.waits += 1
        plain_args, plain_kwargs = tree_map(_numbers, (args, kwargs))
        lands_here = asked is None or torch.device(asked).type == NAME
        if asked is not None:
            plain_kwargs["device"] = torch.device("cpu")
        out = func(*plain_args, **plain_kwargs)
        if packet is aten._to_copy:
            return self._moved(args[0], out, bool(here) if asked is None else lands_here)
        if packet is aten.copy_:
            self.traffic.up += isinstance(args[0], Pretended) and not isinstance(args[1], Pretended)
            self.traffic.down += not isinstance(args[0], Pretended)
            return args[0]
        if not lands_here:
            return out
        wrapped = tree_map(lambda one: Pretended(one) if type(one) is torch.Tensor else one, out)
        return return_and_correct_aliasing(func, args, kwargs, wrapped)

    def _moved(self, source, out, lands_here):
        self.traffic.up += lands_here and not isinstance(source, Pretended)
        self.traffic.down += not lands_here
        return Pretended(out) if lands_here else out

    def _refuse_mixes(self, packet, func, args, leaves):
        tensors = [one for one in leaves if isinstance(one, torch.Tensor)]
        away = [one for one in tensors if not isinstance(one, Pretended)]
        if len(away) in (0, len(tensors)):
            return
        if packet in _INDEXING:
            if not isinstance(args[0], Pretended):
                raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
            value = args[2] if len(args) > 2 else None
            if value is None or isinstance(value, Pretended) or value.dim() == 0:
                self.traffic.up += 1
                return
        elif all(one.dim() == 0 for one in away) and (
            torch.Tag.pointwise in func.tags or packet in (aten.where, aten.masked_fill, aten.masked_fill_, aten.fill_)
        ):
            return
        raise RuntimeError(f"Expected all tensors to be on the same device, but found pretended:0 and cpu: {func}")


def _numbers(one):
    return one.numbers if isinstance(one, Pretended) else one


# What torch itself makes there, out of sight of a mode: the index of `x[[0, 2]]`, the numbers of `torch.tensor(list)`.
_LIBRARY = torch.library.Library("aten", "IMPL")


def _empty_strided(size, stride, dtype=None, layout=None, device=None, pin_memory=None):
    return Pretended(torch.empty_strided(size, stride, dtype=dtype))


def _copy_from(source, target, non_blocking=False):
    _numbers(target).copy_(_numbers(source))
    return target


_LIBRARY.impl("empty_strided", _empty_strided, "PrivateUse1")
_LIBRARY.impl("_copy_from", _copy_from, "PrivateUse1")


@contextlib.contextmanager
def pretended_device():
    """Enter a machine that has the device; yields its `Traffic`."""
    traffic = Traffic()
    with _Device(traffic):
        yield traffic


@contextlib.contextmanager
def in_every_thread():
    """The same machine for threads that begin meanwhile: pages and jobs have threads of their own."""
    run = threading.Thread.run
    with pretended_device() as traffic:

        def entered(thread):
            with _Device(traffic):
                run(thread)

        threading.Thread.run = entered
        try:
            yield traffic
        finally:
            threading.Thread.run = run
