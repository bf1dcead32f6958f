"""Optimizers."""

import numpy


class Optimizer:
    def __init__(self, params, **defaults):
        params = list(params)
        assert params, "optimizer got an empty parameter list"
        assert defaults["lr"] >= 0 and defaults["weight_decay"] >= 0
        self.param_groups, self._seen = [{"params": params, **defaults}], {}

    def zero_grad(self, set_to_none=True):  # pylint: disable=unused-argument
        for p in self.param_groups[0]["params"]:
            p.grad = None

    def step(self, closure=None):
        assert closure is None
        group = self.param_groups[0]
        for p in group["params"]:
            if p.grad is not None:
                self.move(p, p.grad + group["weight_decay"] * p.data, group)

    def move(self, p, gradient, group):
        raise NotImplementedError


class SGD(Optimizer):
    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False):
        assert momentum == dampening == 0 and not nesterov
        super().__init__(params, lr=lr, weight_decay=weight_decay)

    def move(self, p, gradient, group):
        p.data = (p.data - group["lr"] * gradient).astype(numpy.float32)


class Adam(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False):
        assert not amsgrad
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def move(self, p, gradient, group):
        first, second, n = self._seen.get(id(p), (0, 0, 0))
        (b1, b2), n = group["betas"], n + 1
        first, second = b1 * first + (1 - b1) * gradient, b2 * second + (1 - b2) * gradient ** 2
        self._seen[id(p)] = first, second, n
        step = group["lr"] * (first / (1 - b1 ** n)) / (numpy.sqrt(second / (1 - b2 ** n)) + group["eps"])
        p.data = (p.data - step).astype(numpy.float32)
