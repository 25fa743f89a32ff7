"""Runs on the GPU hosts: the only code that imports mxnet. Framework-neutral callers start it as a process."""
