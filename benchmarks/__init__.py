"""Benchmarks and fault rigs: `make bench NAME=…` runs one, and its last line is one JSON object."""
