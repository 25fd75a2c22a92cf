"""What wakes a deliverer: news of a webhook, and a subscription that notices its own death."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from aj.errors import StoreUnavailable
from aj.local.embedded import ServerProcess
from aj.local.server import socket_of
from aj.store import Keys, News, Outbox, connect
from aj.store.outbox import SILENCES
from tests.conftest import Deployment
from tests.support.cutting_proxy import cutting_proxy
from tests.support.deliveries import delivering, ended, outbox_of
from tests.support.receiver import Receiver
from tests.support.waiting import wait_until

HOOK = "http://127.0.0.1:9/hook"
A_MOMENT_S = 0.05


@pytest.fixture
def news(deployment: Deployment) -> Iterator[News]:
    with contextlib.closing(outbox_of(deployment).news()) as made:
        yield made


def test_the_beginning_is_news(news: News) -> None:
    """What was written before nobody heard of it, so a deliverer looks once more."""
    assert news.wait(10)
    assert not news.wait(A_MOMENT_S)


def test_many_webhooks_are_one_piece_of_news(deployment: Deployment, client: FlaskClient, news: News) -> None:
    """All that have been told of by then; who looks once sees them all."""
    assert news.wait(10)
    for _ in range(5):
        ended(deployment, client, HOOK)
    assert news.wait(10)
    assert not news.wait(A_MOMENT_S)


def test_a_living_subscription_is_silent_for_as_long_as_it_likes(news: News) -> None:
    """It answers when it is asked for a sign of life, and that is no news."""
    assert news.wait(10)
    assert not any(news.wait(A_MOMENT_S) for _ in range(SILENCES * 3))


def test_a_subscription_that_is_dead_without_a_sign_is_given_up(deployment: Deployment, store: ServerProcess) -> None:
    """Else webhooks would wait for the next look for ever after."""
    with cutting_proxy(socket_of(store.folder)) as proxy:
        outbox = Outbox(connect(proxy.url, for_worker=True), Keys(deployment.settings.prefix))
        with contextlib.closing(outbox.news()) as news:
            assert news.wait(10)
            proxy.hush()
            assert not any(news.wait(A_MOMENT_S) for _ in range(SILENCES))
            with pytest.raises(StoreUnavailable):
                news.wait(A_MOMENT_S)
        with contextlib.closing(outbox.news()) as news:
            assert news.wait(10)


def test_a_subscription_that_was_cut_begins_anew(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """And webhooks go out meanwhile and afterwards."""
    channel = Keys(deployment.settings.prefix).news

    def listens() -> bool:
        return bool(deployment.redis.pubsub_numsub(channel)[0][1] == 1)

    with delivering(deployment):
        for count in range(1, 4):
            wait_until(listens, what="a deliverer that listens")
            deployment.redis.client_kill_filter(_type="pubsub")
            ended(deployment, client, receiver.url())
            wait_until(lambda: len(receiver.received) == count, what="the webhook")  # noqa: B023 - called here only
        wait_until(listens, what="a deliverer that listens")
