"""What the number of stored jobs changes for `aj`, and what a job takes in the store."""

from __future__ import annotations

from functools import partial
from typing import Any

from aj.settings import Settings
from aj.store import Keys
from bench.samples import Figures, Samples, by_turns
from bench.scene import Scene
from bench.stacks import AJ, SUBMIT
from bench.wire import request

CHUNK = 1000
POST, GET, PAGE, RUN = "POST", "GET of a job", "page of 50 jobs", "running a job"


def growth(scene: Scene) -> Samples:
    """The same work with more and more ended jobs in the store."""
    if AJ not in scene.sites:
        return Samples()
    site, client = scene.sites[AJ], scene.store.client
    worker = site.stack.workers[0]
    scene.clear()
    with scene.working(worker):
        job_id = scene.one_job(site)
    left = [(key, max(0, client.pttl(key)), client.dump(key)) for key in client.scan_iter(count=1000)]
    took: dict[tuple[str, int], list[Figures]] = {}

    def measure(size: int) -> Figures:
        scene.clear()
        for key, ttl_ms, dumped in left:
            client.restore(key, ttl_ms, dumped, replace=True)  # somebody may have written it again
        fill(client, job_id, size - 1)
        scene.store.settle()
        took.setdefault((GET, size), []).append(scene.loaded(site, request("GET", f"/jobs/{job_id}")))
        took.setdefault((PAGE, size), []).append(scene.loaded(site, request("GET", "/jobs")))
        took.setdefault((RUN, size), []).append(scene.executing(site, worker))
        took.setdefault((POST, size), []).append(scene.loaded(site, SUBMIT))
        return {}

    by_turns(scene.rounds(), {str(size): partial(measure, size) for size in scene.plan.sizes})
    return Samples(
        {f"{part}, {size:,}": took[part, size] for part in (POST, GET, PAGE, RUN) for size in scene.plan.sizes}
    )


def fill(client: Any, job_id: str, count: int) -> None:
    """Copies what the ended job `job_id`, alone in the store, has left there `count` times.

    The copies' ids differ from its own in the last 12 digits. It is not done by a script: its garbage would make those
    that are measured slower.
    """
    old = job_id.encode()
    connection = client.connection_pool.get_connection()
    own = [key for key in client.scan_iter(count=1000) if old in key]
    packed = [
        b"".join(connection.pack_command("RESTORE", key, max(0, client.pttl(key)), client.dump(key))) for key in own
    ]
    around = b"".join(packed).split(old)  # ids are equally long, so the bytes of a command serve all of them
    places = _places(client, old)
    for first in range(0, count, CHUNK):
        ids = [old[:-12] + b"%012x" % number for number in range(first, min(count, first + CHUNK))]
        connection.send_packed_command([new.join(around) for new in ids])
        for _ in range(len(ids) * len(own)):
            connection.read_response()
        for key, command, entry, score in places:
            entries = [entry.replace(old, new) for new in ids]
            if command == "ZADD":
                client.zadd(key, dict.fromkeys(entries, score))
            else:
                client.execute_command(command, key, *entries)
    client.connection_pool.release(connection)


def _places(client: Any, job_id: bytes) -> list[tuple[bytes, str, bytes, float]]:
    """Where the store lists the job, whoever does so and for whatever reason: key, how to add to it, entry, score."""
    found: list[tuple[bytes, str, bytes, float]] = []
    for key in client.scan_iter(count=1000):
        kind = client.type(key)
        if kind == b"zset":
            found += [(key, "ZADD", each, score) for each, score in client.zrange(key, 0, -1, withscores=True)]
        elif kind == b"list":
            found += [(key, "RPUSH", each, 0) for each in client.lrange(key, 0, -1)]
        elif kind == b"set":
            found += [(key, "SADD", each, 0) for each in client.smembers(key)]
    return [place for place in found if job_id in place[2]]


def memory(scene: Scene) -> Samples:
    """What one job takes in the store while it waits, after its end, and after the life of its result."""
    samples = Samples()
    if AJ not in scene.sites:
        return samples
    site, count, keys = scene.sites[AJ], scene.plan.count(4000), Keys("aj")
    client = scene.store.client
    scene.clear()
    with scene.working(site.stack.workers[0]):  # what stays once for all jobs is there before
        scene.one_job(site)
    scene.clear()
    empty_bytes = scene.store.memory_bytes()

    def note(state: str) -> None:
        samples.add(state, {"bytes": (scene.store.memory_bytes() - empty_bytes) / count})

    scene.drive(site, SUBMIT, 0, count)
    note("queued")
    with scene.working(site.stack.workers[0]) as program:
        program.wait_for(lambda: client.zcard(keys.ended("succeeded")) >= count, "every job has ended")
    note("ended")
    forget_expired(client, keys)
    note("expired: its id is still answered 410")
    return samples


def forget_expired(client: Any, keys: Keys) -> None:
    """Takes out of the store what the next day takes out, without waiting for it.

    That is all that has the life of a result, and the lists out of which a sweep takes what has expired, RQ's too.
    """
    life_ms = Settings().result_ttl_s * 1000
    gone = [key for key in client.scan_iter(count=1000) if 0 <= client.pttl(key) <= life_ms]
    lists = [each for name in (f"{keys.expiring}:*", "rq:finished:*") for each in client.scan_iter(match=name)]
    client.delete(keys.ended("succeeded"), keys.expiring, *lists, *gone)
