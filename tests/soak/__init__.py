"""Soak: very many jobs with short lives, after which the store must be empty again.

`python -m tests.soak --jobs 1000000` starts a store and workers, submits jobs of every kind, and then waits for the
last of them to expire. It never touches a process that it did not start.
"""
