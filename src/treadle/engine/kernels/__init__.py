"""The fast path on a CPU: one pass of a model in C++, compiled for this processor when it is first used.

The sources need no header of torch, so that compiling takes seconds and not a minute: torch's tensors are
handed over as addresses, through ctypes.
"""
