"""Vectors and matrices."""

import numpy


class DenseVector:
    def __init__(self, values):
        self.array = numpy.array(values, dtype=numpy.float64)
        assert self.array.ndim == 1

    def toArray(self):
        return self.array

    def __len__(self):
        return len(self.array)

    def __getitem__(self, i):
        return self.array[i]


class DenseMatrix:
    def __init__(self, rows):
        self._rows = numpy.array(rows, dtype=numpy.float64)
        assert self._rows.ndim == 2
        self.numRows, self.numCols = self._rows.shape

    def toArray(self):
        return self._rows


class Vectors:
    @staticmethod
    def dense(*elements):
        if len(elements) == 1 and not isinstance(elements[0], (float, int)):
            elements = elements[0]
        return DenseVector(elements)
