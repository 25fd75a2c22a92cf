"""A store that is found by way of Sentinels: how it is named, who is asked, and what is never shown."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.connection import SSLConnection
from redis.sentinel import SentinelConnectionPool

from aj.clock import monotonic_s
from aj.errors import SettingsError, StoreUnavailable
from aj.settings import Settings
from aj.store import Changes, Client, connect
from aj.store.client import errors_converted
from aj.store.sentinel import MasterTLSConnection
from tests.conftest import Deployment
from tests.support.jobs import document, submit
from tests.support.sentinels import MASTER, SENTINEL_PASSWORD, SERVER_PASSWORD, Node, Watched, watched_store
from tests.support.waiting import wait_until

LONGEST_S = 3.0


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with watched_store(tmp_path_factory.mktemp("watched")) as made:
        yield made


@pytest.fixture
def deployment(watched: Watched) -> Deployment:
    """A deployment whose store has no address but by the Sentinels."""
    env = {"AJ_REDIS_URL": watched.url, "AJ_TASKS": "tests.support.tasks"}
    return Deployment(Settings.from_env(env), env, watched.master.client)


# -- how it is named -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://a/shop",
        "redis+sentinel://a:26379,b.example:26380,[::1]:1/shop/15",
        "redis+sentinel://user:pass%40word@a,b,c/my-master/0?sentinel_password=x&protocol=2",
        "rediss+sentinel://:secret@a:1/shop?ssl_cert_reqs=none",
    ],
)
def test_an_address_of_sentinels_is_a_setting(url: str) -> None:
    """Hosts with or without port, IPv6 in brackets, and what a redis:// URL may have."""
    assert Settings.from_env({"AJ_REDIS_URL": url}).redis_url == url
    assert isinstance(connect(url).connection_pool, SentinelConnectionPool)


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://",
        "redis+sentinel://a:26379",
        "redis+sentinel://a:26379/",
        "redis+sentinel:///shop",
        "redis+sentinel://a,,b/shop",
        "redis+sentinel://a:port/shop",
        "redis+sentinel://a/shop/zero",
        "redis+sentinel://:hunter2@b@a/shop",
        "unix+sentinel://a/shop",
        "sentinel://a/shop",
    ],
)
def test_what_is_no_address_of_sentinels_is_refused(url: str) -> None:
    """With what is accepted, and without the value."""
    with pytest.raises(SettingsError, match=r"^AJ_REDIS_URL is a value that is not shown; .*redis\+sentinel://"):
        Settings.from_env({"AJ_REDIS_URL": url})


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://:hunter2@a:99999/shop",
        "redis+sentinel://:hunter2@a/shop?sentinel_port=1",
        "redis+sentinel://:hunter2@a/shop?no_such_option=1",
        "redis+sentinel://:hunter2@a/shop?socket_timeout=hunter2",
        "redis://:hunter2/3@a",
        "redis://:hunter2@a:port",
        "redis://:hunter2@a/0?no_such_option=1",
        "rediss://:hunter2@a/0?ssl_cert_reqs=hunter2",
    ],
)
def test_what_cannot_be_understood_is_refused_at_start(url: str) -> None:
    """Not at the first request, and no part of the password is quoted."""
    with pytest.raises(SettingsError, match=r"^AJ_REDIS_URL cannot be understood") as refused:
        connect(url)
    assert "hunter2" not in f"{refused.value} {refused.value.__cause__}"


def test_tls_counts_for_the_server_and_the_sentinels() -> None:
    """`rediss+sentinel`, with the same certificates."""
    pool: Any = connect("rediss+sentinel://a/shop?ssl_ca_certs=/ca.pem").connection_pool
    assert pool.connection_class is MasterTLSConnection
    [sentinel] = pool.sentinel_manager.sentinels
    assert sentinel.connection_pool.connection_class is SSLConnection
    for each in (pool, sentinel.connection_pool):
        assert each.connection_kwargs["ssl_ca_certs"] == "/ca.pem"


def test_every_wait_has_a_limit() -> None:
    """For the server and for the Sentinels, in a web process and in a worker."""
    for for_worker in (False, True):
        pool: Any = connect("redis+sentinel://a,b/shop", for_worker=for_worker).connection_pool
        for each in (pool, *(sentinel.connection_pool for sentinel in pool.sentinel_manager.sentinels)):
            assert 0 < each.connection_kwargs["socket_connect_timeout"] <= 1
            assert 0 < each.connection_kwargs["socket_timeout"] <= 10
        assert pool.connection_kwargs["retry"].get_retries() == (0 if for_worker else 1)


# -- what is found -------------------------------------------------------------------------------------------


def test_a_job_runs_through_a_store_behind_sentinels(deployment: Deployment) -> None:
    """API and worker know nothing but the Sentinels; both passwords have characters that a URL must encode."""
    client = deployment.client()
    job_id = submit(client, n=5)
    assert deployment.worker().work_once()
    assert document(client, job_id)["result"] == 25


def test_the_client_is_ours(watched: Watched) -> None:
    """Whichever way the store is found."""
    assert type(connect(watched.url)) is Client


@pytest.mark.parametrize("what", ["master", "password", "sentinels"])
def test_a_wrong_name_or_password_is_an_unavailable_store(
    watched: Watched, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says whose fault it is, and shows no password, right or wrong; nor does any repr."""
    client = connect(watched.url_of(**{"master": MASTER, what: "wrong3"}))
    with caplog.at_level(logging.DEBUG), pytest.raises(StoreUnavailable) as raised, errors_converted():
        client.ping()
    told = f"{caplog.text} {raised.value} {raised.value.__cause__} {client!r} {client.connection_pool!r}"
    pool: Any = client.connection_pool
    told += repr(pool.sentinel_manager) + repr(pool.sentinel_manager.sentinels) + repr(pool.make_connection())
    assert {"master": "know none of that name", "password": "password", "sentinels": "password"}[what] in caplog.text
    for secret in (SERVER_PASSWORD, SENTINEL_PASSWORD, "hunter2", *(["wrong3"] if what != "master" else [])):
        assert secret not in told


def test_a_sentinel_that_hangs_is_passed_over(watched: Watched, deployment: Deployment) -> None:
    """Whichever it is, the submission is accepted; the next connection asks another one first."""
    with watched.sentinels[0].frozen():
        client = deployment.client()
        started_s = monotonic_s()
        submit(client, n=5)
        assert monotonic_s() - started_s < 1.5
        pool: Any = connect(watched.url).connection_pool
        pool.get_master_address()
        started_s = monotonic_s()
        pool.get_master_address()
        assert monotonic_s() - started_s < 0.2


def test_while_all_sentinels_hang_old_connections_serve_and_new_ones_are_a_quick_503(
    watched: Watched, deployment: Deployment
) -> None:
    """The master itself is well: who knows it goes on."""
    old = deployment.client()
    submit(old, n=5)
    with ExitStack() as stack:
        for each in watched.sentinels:
            stack.enter_context(each.frozen())
        submit(old, n=6)
        started_s = monotonic_s()
        assert deployment.client().post("/jobs", json={"n": 7}).status_code == 503
        assert monotonic_s() - started_s < LONGEST_S
        assert deployment.client().get("/readyz").json["checks"]["store"] == "has no master at the moment"  # type: ignore[index]


def test_a_server_that_says_it_is_a_replica_is_not_used(watched: Watched) -> None:
    """A Sentinel that was cut off from the others may name the master of yesterday, which would answer 404."""
    for each in watched.sentinels:
        each.client.sentinel_monitor("yesterday", "127.0.0.1", watched.replica.port, 2)
        each.client.sentinel_set("yesterday", "auth-pass", SERVER_PASSWORD)
    client = connect(watched.url_of("yesterday"))
    with pytest.raises(redis.ConnectionError, match="is a replica"):
        client.get("x")
    for each in watched.sentinels:
        each.client.sentinel_remove("yesterday")


def test_a_subscription_that_cannot_be_renewed_is_no_connection(watched: Watched) -> None:
    """Else it would be silent for ever, and nobody would notice."""
    client = connect(watched.url, for_worker=True)
    pubsub: Any = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
    pubsub.subscribe("news")
    renewals: list[int] = []

    def refuse(*_: object) -> None:
        renewals.append(1)
        raise redis.ConnectionError("cut while subscribing")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pubsub, "subscribe", refuse)
        pubsub.connection.disconnect()
        with pytest.raises(redis.ConnectionError):
            pubsub.get_message(timeout=0.1)
    assert renewals
    pubsub.get_message(timeout=0.1)

    def heard() -> bool:
        watched.master.client.publish("news", "x")
        return pubsub.get_message(timeout=0.1) is not None

    wait_until(heard, 5, "a renewed subscription")


def test_a_frozen_master_is_a_quick_503(watched: Watched, deployment: Deployment) -> None:
    """Over old connections and new ones, before the Sentinels have noticed."""
    for each in watched.sentinels:
        each.client.sentinel_set(MASTER, "down-after-milliseconds", 60_000)
    old = deployment.client()
    submit(old, n=5)
    with watched.master.frozen():
        for client in (old, deployment.client()):
            started_s = monotonic_s()
            assert client.post("/jobs", json={"n": 5}).status_code == 503
            assert monotonic_s() - started_s < LONGEST_S


def test_a_master_that_lives_when_it_is_replaced_is_left_soon(folder: Path) -> None:
    """In a failover by hand it serves on for ten seconds, and what it accepts then is lost.

    Nor does it tell of changes any more; a process whose requests all wait follows as well.
    """
    with watched_store(folder / "own") as watched, Changes(connect(watched.url), "news").watching("j") as changed:

        def heard(node: Node) -> bool:
            changed.clear()
            node.client.publish("news", "j")
            return changed.wait(0.1)

        client = connect(watched.url)
        assert served_by(client) == watched.master.port
        wait_until(lambda: heard(watched.master), 5, "a subscription")
        wait_until(lambda: starts_a_failover(watched), 10, "a failover that begins")
        wait_until(lambda: watched.master_port() == watched.replica.port, 15, "another master")
        wait_until(lambda: served_by(client) == watched.replica.port, 5, "a client that follows")
        wait_until(lambda: heard(watched.replica), 5, "a subscription that follows")


def starts_a_failover(watched: Watched) -> bool:
    try:
        return bool(watched.sentinels[0].client.sentinel_failover(MASTER))
    except redis.ResponseError:  # the replica is not trusted yet, as after a pause
        return False


def served_by(client: Client) -> int:
    found: Any = client.info("server")
    return int(found["tcp_port"])
