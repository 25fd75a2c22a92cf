"""The task of `aj` in the bench: what the peers' task does, and no more."""

from aj import task
from bench.peers.marks import mark


@task
def square(n: int) -> int:
    """The square of n."""
    mark()
    return n * n
