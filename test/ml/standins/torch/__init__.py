"""A stand-in for PyTorch 2: tensors over numpy with gradients backwards, a few layers and two optimizers."""

import contextlib

import numpy

from torch import nn, optim  # pylint: disable=unused-import
from torch.tensors import STATE, Tensor, relu, sigmoid  # pylint: disable=unused-import

float32 = numpy.float32


def tensor(data, *, dtype=None, device=None, requires_grad=False):  # pylint: disable=unused-argument
    assert dtype is float32, "the others are double precision, and do not go with layers"
    return Tensor(numpy.array(data, dtype=dtype))


def manual_seed(seed):
    assert isinstance(seed, int)
    STATE["random"] = numpy.random.RandomState(seed % 2 ** 32)


def randperm(n):
    assert isinstance(n, int)
    return Tensor(STATE["random"].permutation(n))


@contextlib.contextmanager
def no_grad():
    STATE["grad"], before = False, STATE["grad"]
    yield
    STATE["grad"] = before
