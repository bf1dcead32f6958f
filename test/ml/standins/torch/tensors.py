"""Tensors: each knows what it was made of, and how a gradient goes back to it."""

import numpy

STATE = {"random": numpy.random.RandomState(0), "grad": True}


class Tensor:
    def __init__(self, data, parents=(), requires_grad=False):
        self.data, self.grad = data, None
        self._parents = [(p, back) for p, back in parents if p.requires_grad] if STATE["grad"] else []
        self.requires_grad = requires_grad or bool(self._parents)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return Tensor(self.data[index.data if isinstance(index, Tensor) else index])

    def reshape(self, *shape):
        return Tensor(self.data.reshape(shape), [(self, lambda g: g.reshape(self.data.shape))])

    def split(self, split_size):
        assert isinstance(split_size, int) and split_size > 0
        return tuple(Tensor(self.data[i:i + split_size]) for i in range(0, len(self.data), split_size))

    def __mul__(self, other):
        if not isinstance(other, Tensor):
            return Tensor(self.data * numpy.float32(other), [(self, lambda g: g * other)])
        assert self.data.shape == other.data.shape
        return Tensor(self.data * other.data, [(self, lambda g: g * other.data), (other, lambda g: g * self.data)])

    __rmul__ = __mul__

    def __sub__(self, other):
        return Tensor(self.data - numpy.float32(other), [(self, lambda g: g)])

    def __rsub__(self, other):
        return Tensor(numpy.float32(other) - self.data, [(self, lambda g: -g)])

    def mean(self):
        n = self.data.size
        return Tensor(self.data.mean(), [(self, lambda g: numpy.full(self.data.shape, g / n))])

    def backward(self):
        assert self.requires_grad, "element 0 of tensors does not require grad and does not have a grad_fn"
        assert numpy.ndim(self.data) == 0, "grad can be implicitly created only for scalar outputs"
        self._back(numpy.float32(1))

    def _back(self, gradient):
        if not self._parents:
            self.grad = gradient if self.grad is None else self.grad + gradient
        for parent, back in self._parents:
            parent._back(back(gradient))

    def detach(self):
        return Tensor(self.data)

    def numpy(self):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self.data


def relu(value):
    return Tensor(numpy.maximum(value.data, 0), [(value, lambda g: g * (value.data > 0))])


def sigmoid(value):
    out = 1 / (1 + numpy.exp(-value.data))
    return Tensor(out, [(value, lambda g: g * out * (1 - out))])
