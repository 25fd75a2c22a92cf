"""The bench behind `./run bench`: `aj` beside two tutorial apps, measured by turns on this machine.

It starts everything itself on loopback, prints tables and writes the generated parts of `docs/performance.md`.
Nothing of it is installed with `aj`, and nothing in `aj` or the tests may depend on a time that it measures.
"""
