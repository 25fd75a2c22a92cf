"""Chaos: a whole deployment under load, killed at random, and audited from outside.

`python -m tests.chaos --minutes 10` starts a store, two APIs, two worker fleets and a receiver, kills them
again and again, and then proves that nothing was lost. It never touches a process that it did not start.
"""
