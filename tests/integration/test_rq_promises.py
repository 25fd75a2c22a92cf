"""What we count on in RQ and redis-py, and what RQ's users count on in us: each test fails when one of them changes."""

from __future__ import annotations

import base64
import json
import pickle
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rq
import rq.job
from flask.testing import FlaskClient
from rq.serializers import JSONSerializer

from aj.job import new_job_id
from aj.store import Place, connect
from aj.store.client import commands_of
from aj.store.enqueue import ID, KEY, NOW, Enqueue, Kind
from aj.store.rq_classes import Job, Queue
from tests.conftest import Deployment
from tests.support.jobs import document, run, submit, work_off
from tests.support.own_store import own_deployment

NOWHERE = "redis://127.0.0.1:1/0"
PLACE = Place("q:x", timeout_s=7, result_ttl_s=70, max_queued=10)


KIND = Kind("q:x", "aj:square", timeout_s=7, result_ttl_s=70)


def enqueue_commands(kind: Kind, job_id: str, params: dict[str, Any]) -> list[list[Any]]:
    """What our submission would send, made with a client that cannot send anything."""
    enqueue = Enqueue(connect(NOWHERE), kind)
    filled = dict(zip((ID, *range(KEY, NOW + 1)), (job_id, *enqueue(job_id, params)), strict=True))
    return [[filled.get(word, word) for word in command] for command in json.loads(enqueue.commands)]


def as_rq_reads(data: bytes) -> bytes:
    """RQ compresses what it writes, and reads what is not compressed as it is; ours is not where it is small."""
    try:
        return zlib.decompress(data)
    except zlib.error:
        return data


def test_nothing_is_sent_while_rq_makes_its_commands() -> None:
    """They are made without a store; whatever RQ sent early would escape our atomic step."""
    assert enqueue_commands(KIND, new_job_id(1), {"n": 5})


def test_the_push_comes_last() -> None:
    """Where a script breaks off, as when memory runs out, no entry stands in the queue without its job."""
    job_id = new_job_id(1)
    *others, last = enqueue_commands(KIND, job_id, {"n": 5})
    assert last == ["RPUSH", "rq:queue:q:x", job_id]
    assert {tuple(words[:2]) for words in others} == {("SADD", "rq:queues"), ("HSET", f"rq:job:{job_id}")}


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        (KIND, {"n": 5}),
        (KIND, {}),
        (
            Kind("data", "created_at:data", 1, 31_622_400),
            {"data": "grün ✓ \x00", "deep": [{"a": [None]}]},
        ),
        (KIND, {"large": "x" * 60_000}),
    ],
    ids=["usual", "no parameters", "names of fields", "large"],
)
def test_what_is_filled_in_is_what_rq_would_have_made(kind: Kind, params: dict[str, Any]) -> None:
    """Word for word, but for times and the form of the payload, whatever queues, tasks and parameters are called."""
    job_id = new_job_id(1)
    with connect(NOWHERE).pipeline() as pipe:
        pipe.multi()
        Queue(kind.queue, connect(NOWHERE)).enqueue_call(
            kind.name,
            kwargs=params,
            job_id=job_id,
            timeout=kind.timeout_s,
            result_ttl=kind.result_ttl_s,
            failure_ttl=kind.result_ttl_s,
            description=kind.name,
            pipeline=pipe,
        )
        fresh = [list(words) for words in commands_of(pipe)]
    filled = enqueue_commands(kind, job_id, params)
    for command in fresh:
        command[:] = [str(word) if isinstance(word, int) else word for word in command]  # as they are sent
    for command in (*fresh, *filled):
        for at, field in enumerate(command[2::2]) if command[0] == "HSET" else ():
            if field in ("created_at", "enqueued_at"):
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", command[3 + 2 * at])
                command[3 + 2 * at] = "now"
            if field == "data":
                command[3 + 2 * at] = as_rq_reads(command[3 + 2 * at])
    assert filled == fresh


def test_a_pipeline_keeps_its_commands_as_we_think() -> None:
    """Each as its words, in order, in `command_stack`; `reset` forgets them."""
    with connect(NOWHERE).pipeline() as pipe:
        pipe.multi()
        pipe.hset("a", mapping={"b": b"\xff", "c": 1})
        pipe.expire("a", 5)
        assert commands_of(pipe) == [("HSET", "a", "b", b"\xff", "c", 1), ("EXPIRE", "a", 5)]
        pipe.reset()
        assert commands_of(pipe) == []


def test_our_rq_job_has_the_fields_of_a_plain_one(deployment: Deployment, client: FlaskClient) -> None:
    """But for times, the form of the payload and empty fields, it is what RQ itself would have written."""
    ours: Any = deployment.redis.hgetall(f"rq:job:{submit(client, n=5)}")
    name = f"{deployment.settings.prefix}:square"
    plain_id = f"plain-{new_job_id(1)}"
    rq.Queue(deployment.queue, deployment.redis, serializer=JSONSerializer).enqueue_call(
        name,
        kwargs={"n": 5},
        job_id=plain_id,
        timeout=180,
        result_ttl=86_400,
        failure_ttl=86_400,
        description=name,
    )
    fields: Any = deployment.redis.hgetall(f"rq:job:{plain_id}")
    plain = {name: value for name, value in fields.items() if value}
    deployment.redis.delete(f"rq:job:{plain_id}")
    times = (b"created_at", b"enqueued_at")
    assert all(ours[name] and plain[name] for name in times)
    for each in (ours, plain):
        each |= {**dict.fromkeys(times), b"data": as_rq_reads(each[b"data"])}
    assert ours == plain


def test_plain_rq_reads_our_queue_and_job(deployment: Deployment, client: FlaskClient) -> None:
    """With the JSON serializer and no class of ours."""
    job_id = submit(client, n=5)
    queue = rq.Queue(deployment.queue, deployment.redis, serializer=JSONSerializer)
    assert queue.job_ids == [job_id]
    job = queue.fetch_job(job_id)
    assert job is not None
    assert (job.func_name, job.args, job.kwargs) == (f"{deployment.settings.prefix}:square", [], {"n": 5})
    assert (job.origin, job.timeout, job.get_status()) == (deployment.queue, 180, "queued")
    work_off(deployment)
    assert (queue.job_ids, job.get_status()) == ([], "finished")
    assert queue.finished_job_registry.get_job_ids() == [job_id]


def test_plain_rq_reads_how_a_job_ended(deployment: Deployment, client: FlaskClient) -> None:
    """When it ran, and in short why it failed; only of one that failed are the arguments still there."""
    good_id, bad_id = submit(client, n=5), submit(client, task="fail", text="x" * 100)
    work_off(deployment)
    queue = rq.Queue(deployment.queue, deployment.redis, serializer=JSONSerializer)
    good, bad = queue.fetch_job(good_id), queue.fetch_job(bad_id)
    assert good is not None
    assert bad is not None
    assert (good.description, good.kwargs) == (f"{deployment.settings.prefix}:square", {})
    assert good.created_at <= (good.started_at or good.created_at) <= (good.ended_at or good.created_at)
    assert (bad.description, bad.kwargs) == (f"{deployment.settings.prefix}:fail", {"text": "x" * 100, "public": False})
    with pytest.warns(DeprecationWarning, match="exc_info"):
        assert (bad.exc_info or "").startswith("task-failed: ")
    assert queue.failed_job_registry.get_job_ids() == [bad_id]


def test_the_description_holds_no_argument(deployment: Deployment, client: FlaskClient) -> None:
    """RQ writes it to its log and shows it in its tools."""
    job_id = submit(client, task="fail", text="hunter2", callback_url="http://127.0.0.1:9/hunter2")
    assert deployment.redis.hget(f"rq:job:{job_id}", "description") == f"{deployment.settings.prefix}:fail".encode()


def test_the_job_says_how_long_it_may_run_and_be_kept(deployment: Deployment) -> None:
    """Ours, and not RQ's defaults of 500 s and a year."""
    client = deployment.client(AJ_JOB_TIMEOUT_S="7", AJ_RESULT_TTL_S="70")
    fields = ["timeout", "result_ttl", "failure_ttl"]
    job_id, limited_id = submit(client, n=5), submit(client, task="run_for_ever")
    assert deployment.redis.hmget(f"rq:job:{job_id}", fields) == [b"7", b"70", b"70"]
    assert deployment.redis.hmget(f"rq:job:{limited_id}", fields) == [b"1", b"70", b"70"]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Deployment]:
    with own_deployment(tmp_path / "store") as deployment:
        yield deployment


def test_nothing_in_the_store_is_pickled(alone: Deployment) -> None:
    """Whoever can write to the store, or read from it, has no pickle to work with: jobs waiting, succeeded, failed."""
    client = alone.client()
    run(alone, client, n=5)
    run(alone, client, task="fail", text="x")
    submit(client, key="k", n=5, metadata={"a": 1}, callback_url="http://127.0.0.1:9/")
    pieces = [piece for value in stored_values(alone.redis) for piece in unwrapped(value)]
    assert f'["{alone.settings.prefix}:square", null, [], {{"n": 5}}]'.encode() in pieces
    assert not [piece for piece in pieces if piece.startswith(b"\x80")]


def stored_values(redis: Any) -> Iterator[bytes]:
    """Every string anywhere in the store."""
    for key in redis.scan_iter(count=1000):
        kind = redis.type(key)
        if kind == b"hash":
            yield from redis.hvals(key)
        elif kind == b"string":
            yield redis.get(key)
        elif kind == b"list":
            yield from redis.lrange(key, 0, -1)
        elif kind == b"set":
            yield from redis.smembers(key)
        elif kind == b"zset":
            yield from redis.zrange(key, 0, -1)
        else:
            assert kind == b"stream"
            for _, fields in redis.xrange(key):
                yield from fields.values()


def unwrapped(value: bytes) -> Iterator[bytes]:
    """The value, and what is in it where RQ has compressed or encoded it."""
    yield value
    for unwrap in (zlib.decompress, lambda packed: base64.b64decode(packed, validate=True)):
        try:
            inner = unwrap(value)
        except (ValueError, zlib.error):
            continue
        if inner:
            yield from unwrapped(inner)


class Bomb:
    """Touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._path,)


def test_a_pickle_in_the_queue_is_never_opened(deployment: Deployment, client: FlaskClient, folder: Path) -> None:
    """A payload that somebody else has put there fails its job and does nothing more."""
    job_id = submit(client, n=5)
    bomb = zlib.compress(pickle.dumps(("square", None, [], Bomb(folder / "exploded"))))
    deployment.redis.hset(f"rq:job:{job_id}", "data", bomb)
    work_off(deployment)
    assert document(client, job_id)["error"]["type"] == "task-unavailable"
    assert not (folder / "exploded").exists()


def test_queue_and_job_use_json_whatever_they_are_told() -> None:
    """A command line, a default or another library may say pickle."""
    client = connect(NOWHERE)
    queue = Queue("q:x", client, serializer=pickle, job_class=rq.job.Job, is_async=True)
    assert (queue.serializer, queue.job_class) == (JSONSerializer, Job)
    assert Job("x", connection=client, serializer=pickle).serializer is JSONSerializer
    made = Job.create("square", kwargs={"n": 5}, connection=client, serializer="pickle")
    assert made.data == b'["square", null, [], {"n": 5}]'
