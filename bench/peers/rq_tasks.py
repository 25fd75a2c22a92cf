"""The task of the RQ app, apart from it, so that a worker loads no Flask."""

from bench.peers.marks import mark


def square(n: int) -> int:
    mark()
    return n * n
