"""Layers."""

import numpy

from torch.tensors import STATE, Tensor, relu


class Module:
    def __call__(self, *arguments):
        return self.forward(*arguments)

    def forward(self, *arguments):
        raise NotImplementedError

    def parameters(self, recurse=True):  # pylint: disable=unused-argument
        yield from ()


class Linear(Module):
    def __init__(self, in_features, out_features, bias=True):
        assert isinstance(in_features, int) and isinstance(out_features, int) and bias
        self.in_features, self.out_features = in_features, out_features
        bound = in_features ** -0.5
        self.weight = Tensor(STATE["random"].uniform(-bound, bound, (out_features, in_features)).astype(numpy.float32),
                             requires_grad=True)
        self.bias = Tensor(STATE["random"].uniform(-bound, bound, out_features).astype(numpy.float32), requires_grad=True)

    def forward(self, *arguments):
        x, = arguments
        assert x.data.dtype == numpy.float32, "mat1 and mat2 must have the same dtype"
        return Tensor(x.data @ self.weight.data.T + self.bias.data,
                      [(self.weight, lambda g: g.T @ x.data), (self.bias, lambda g: g.sum(0)),
                       (x, lambda g: g @ self.weight.data)])

    def parameters(self, recurse=True):
        yield self.weight
        yield self.bias


class ReLU(Module):
    def forward(self, *arguments):
        return relu(*arguments)


class Sequential(Module):
    def __init__(self, *layers):
        self._layers = layers

    def __iter__(self):
        return iter(self._layers)

    def forward(self, *arguments):
        x, = arguments
        for layer in self._layers:
            x = layer(x)
        return x

    def parameters(self, recurse=True):
        for layer in self._layers:
            yield from layer.parameters()


class BCEWithLogitsLoss(Module):
    def forward(self, *arguments):
        out, target = arguments
        assert out.data.shape == target.data.shape, f"Target size ({target.data.shape}) must be the same as input size"
        assert target.data.dtype == numpy.float32
        likely = 1 / (1 + numpy.exp(-out.data))
        loss = numpy.maximum(out.data, 0) - out.data * target.data + numpy.log1p(numpy.exp(-abs(out.data)))
        return Tensor(loss.mean(), [(out, lambda g: (g * (likely - target.data) / loss.size).astype(numpy.float32))])
