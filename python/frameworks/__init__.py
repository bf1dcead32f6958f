"""Machine-learning frameworks behind one face, for `sonde-pod ml`. docs/ml.md tells how to add one.

common.py has what a framework is (Adapter), what may be asked of it and the data; tasks.py has the tasks. Every other
file is one framework: it ends with `ADAPTER = TheClass` and imports its framework only when it is used.
"""
