"""Who may see and do what on the dashboard, and that nobody is made to do it by another site."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from flask import Flask
from flask.testing import FlaskClient

from aj import JobsBlueprint
from aj.access import new_key
from aj.job import CallbackState
from aj.settings import Settings
from aj.store import Attempt, Keys
from tests.conftest import Deployment
from tests.support.deliveries import ended, outbox_of
from tests.support.jobs import caller, document, run, submit, work_off
from tests.support.pages import forms, press, shown, sign_in
from tests.support.sweeping import take_and_vanish

ALICE, BOB, OLGA = new_key(), new_key(), new_key()
NOBODYS = "018f2b5e-0000-7000-8000-000000000000"
KEYS = ",".join(f"{name}:{key[1]}" for name, key in (("alice", ALICE), ("bob", BOB), ("olga", OLGA)))


@pytest.fixture
def acting(deploy: Callable[..., Deployment]) -> Deployment:
    return deploy(AJ_DASHBOARD="act")


@pytest.fixture
def guarded(deploy: Callable[..., Deployment]) -> Deployment:
    return deploy(AJ_DASHBOARD="act", AJ_API_KEYS=KEYS, AJ_DASHBOARD_OPERATORS="olga")


def signed_in(deployment: Deployment, key: str) -> FlaskClient:
    client = deployment.client()
    assert sign_in(client, key).status_code == 303
    return client


# -- acting --------------------------------------------------------------------------------------------------


def test_a_waiting_job_is_cancelled(acting: Deployment) -> None:
    """By the form of its page, which leads back to the page."""
    client = acting.client()
    job_id = submit(client, n=5)
    answer = press(client, f"/dashboard/jobs/{job_id}", "/cancel")
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/dashboard/jobs/{job_id}?did=cancel")
    assert document(client, job_id)["error"]["type"] == "cancelled"
    assert "cancelled" in shown(client, f"/jobs/{job_id}?did=cancel")
    assert "/cancel" not in client.get(f"/dashboard/jobs/{job_id}").text


def test_a_webhook_is_sent_again(acting: Deployment) -> None:
    """From the page of its job, and from the list."""
    client = acting.client()
    job_id = ended(acting, client, "http://127.0.0.1:9/hook")
    for page in (f"/dashboard/jobs/{job_id}", "/dashboard/deliveries?state=exhausted"):
        [claimed], _ = outbox_of(acting).claim(1, 30)
        outbox_of(acting).record(claimed, Attempt(CallbackState.EXHAUSTED, 503, 1, log=b'{"status": 503}'))
        assert press(client, page, f"/{job_id}/deliveries").status_code == 303
        assert document(client, job_id)["callback"]["state"] == "pending"
    [claimed], _ = outbox_of(acting).claim(1, 30)
    outbox_of(acting).record(claimed, Attempt(CallbackState.DELIVERED, 200, 1))


def test_a_page_says_only_what_was_done(acting: Deployment) -> None:
    """Anybody can write its address, and what it says there may be long over, or of a job without a webhook."""
    client = acting.client()
    said = {"sent": "is sent again", "pending": "on its way already", "cancel": "was asked to stop"}

    def says(job_id: str) -> list[str]:
        return [word for word, text in said.items() if text in shown(client, f"/jobs/{job_id}?did={word}")]

    bare, hooked = submit(client, n=5), ended(acting, client, "http://127.0.0.1:9/hook")
    assert (says(run(acting, client, n=6)["job_id"]), says(hooked)) == ([], ["pending"])
    assert says(bare) == []
    [claimed], _ = outbox_of(acting).claim(1, 30)
    outbox_of(acting).record(claimed, Attempt(CallbackState.EXHAUSTED, 503, 1, log=b'{"status": 503}'))
    assert says(hooked) == []
    press(client, f"/dashboard/jobs/{hooked}", f"/{hooked}/deliveries")
    assert says(hooked) == ["sent", "pending"]
    [claimed], _ = outbox_of(acting).claim(1, 30)
    outbox_of(acting).record(claimed, Attempt(CallbackState.DELIVERED, 200, 1, log=b'{"status": 200}'))
    assert says(hooked) == ["sent"]
    waiting = submit(client, n=7)
    press(client, f"/dashboard/jobs/{waiting}", "/cancel")
    assert says(waiting) == ["cancel"]


def test_an_action_that_comes_too_late_says_so(acting: Deployment) -> None:
    """The page was open while the job ended."""
    client = acting.client()
    job_id = submit(client, n=5)
    [(action, fields)] = forms(client.get(f"/dashboard/jobs/{job_id}").text).items()
    work_off(acting)
    answer = client.post(action, data=fields)
    assert answer.status_code == 409
    assert "The job has ended already" in answer.text
    assert f'href="/dashboard/jobs/{job_id}">To the job' in answer.text
    assert "Refresh" not in answer.text, "what was asked for by a POST cannot be asked for again"
    again = client.post(action.replace("/cancel", "/deliveries"), data=fields)
    assert (again.status_code, again.mimetype) == (409, "text/html")


def test_no_get_changes_anything(acting: Deployment) -> None:
    """Nor HEAD or OPTIONS, on any address of an action."""
    client = acting.client()
    job_id = submit(client, n=5)
    for ending in ("cancel", "deliveries"):
        for method in ("GET", "HEAD", "OPTIONS"):
            answer = client.open(f"/dashboard/jobs/{job_id}/{ending}", method=method)
            assert answer.status_code in (200, 405)
    assert document(client, job_id)["status"] == "queued"


def test_a_dashboard_for_reading_has_no_forms_and_refuses(deployment: Deployment) -> None:
    """Also with a token that is right."""
    client = deployment.client()
    job_id = submit(client, n=5)
    assert forms(client.get(f"/dashboard/jobs/{job_id}").text) == {}
    other = deployment.client(AJ_DASHBOARD="act")
    [(action, fields)] = forms(other.get(f"/dashboard/jobs/{job_id}").text).items()
    client.set_cookie("aj_dashboard", token_of(other), path="/dashboard")
    answer = client.post(action, data=fields)
    assert (answer.status_code, answer.mimetype) == (403, "text/html")
    assert "reading only" in answer.text
    assert document(client, job_id)["status"] == "queued"


def token_of(client: FlaskClient) -> str:
    cookie = client.get_cookie("aj_dashboard", path="/dashboard")
    assert cookie is not None
    return cookie.value


# -- forged requests -----------------------------------------------------------------------------------------

FORGED = {
    "no token": ({}, {"token": ""}),
    "a token of somebody else": ({}, {"token": "0" * 64}),
    "another site": ({"Sec-Fetch-Site": "cross-site"}, {}),
    "a sister of our site": ({"Sec-Fetch-Site": "same-site"}, {}),
    "another host": ({"Origin": "http://evil.example"}, {}),
    "no host": ({"Origin": "null"}, {}),
    "another port": ({"Origin": "http://localhost:81"}, {}),
    "what is no origin": ({"Origin": "http://[evil"}, {}),
}


@pytest.mark.parametrize(("headers", "changed"), FORGED.values(), ids=FORGED)
def test_what_another_page_asks_for_is_refused(
    acting: Deployment, headers: dict[str, str], changed: dict[str, str]
) -> None:
    """Nothing is done, whatever cookie comes along."""
    client = acting.client()
    job_id = submit(client, n=5)
    [(action, fields)] = forms(client.get(f"/dashboard/jobs/{job_id}").text).items()
    answer = client.post(action, data={**fields, **changed}, headers=headers)
    assert (answer.status_code, answer.mimetype) == (403, "text/html")
    assert document(client, job_id)["status"] == "queued"


def test_a_token_without_its_cookie_is_nothing(acting: Deployment) -> None:
    """A page that was saved, or read by somebody else."""
    client = acting.client()
    job_id = submit(client, n=5)
    [(action, fields)] = forms(client.get(f"/dashboard/jobs/{job_id}").text).items()
    for cookie in (None, "x", "x" * 43):
        other = acting.client()
        if cookie is not None:
            other.set_cookie("aj_dashboard", cookie, path="/dashboard")
        assert other.post(action, data=fields).status_code == 403
    assert document(client, job_id)["status"] == "queued"


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "same-origin"}, {"Origin": "http://localhost"}, {}])
def test_our_own_page_may_ask(acting: Deployment, headers: dict[str, str]) -> None:
    """With what a browser sends along, or an old one does not."""
    client = acting.client()
    job_id = submit(client, n=5)
    [(action, fields)] = forms(client.get(f"/dashboard/jobs/{job_id}").text).items()
    assert client.post(action, data=fields, headers=headers).status_code == 303


def test_a_form_that_is_too_large_is_refused(acting: Deployment) -> None:
    """Ours have two short fields."""
    client = acting.client()
    client.get("/dashboard")
    assert client.post("/dashboard/sign-out", data={"token": "x" * 100_000}).status_code == 413


# -- signing in ----------------------------------------------------------------------------------------------


def test_without_a_session_every_page_leads_to_the_sign_in(guarded: Deployment) -> None:
    """And from there back, to pages of ours only. What is shown there tells nothing."""
    client = guarded.client()
    job_id = submit(caller(guarded, ALICE[0]), n=5)
    for path in ("", "/jobs", "/deliveries", f"/jobs/{job_id}", f"/jobs/{job_id}/result"):
        answer = client.get(f"/dashboard{path}")
        assert answer.status_code == 303
        assert answer.headers["Location"].startswith("/dashboard/sign-in")
        assert answer.data == b""
    assert "Overview" not in client.get("/dashboard/sign-in").text
    page = f"/dashboard/sign-in?next=/jobs/{job_id}"
    assert press(client, page, "/sign-in", key=ALICE[0]).headers["Location"] == f"/dashboard/jobs/{job_id}"
    for evil in (
        "//evil.example",
        "//",
        "https://evil.example",
        "/../x",
        "/jobs/../..",
        "@evil.example",
        "/jobs\n",
        "/jobs//evil.example?status=failed",
        ".evil.example/?a=b",
    ):
        client = guarded.client()
        assert sign_in(client, ALICE[0], next=evil).headers["Location"] == "/dashboard"


@pytest.mark.parametrize(
    "page",
    [
        "",
        "/",
        "/jobs",
        "/jobs/",
        "/deliveries/",
        f"/jobs/{NOBODYS}/",
        "?a",
        "/jobs?status=failed&task=a%20b%2f%c3%a9",
        "/deliveries?state=exhausted&cursor=//evil.example",
        "/jobs?id=%0d%0aLocation:%20x",
        "/jobs/?owner='%22%3C%3E",
    ],
)
def test_the_way_back_is_the_page_that_was_asked_for(guarded: Deployment, page: str) -> None:
    """With the filter that stood in its address, and a slash at the end, as people type it."""
    client = guarded.client()
    way = client.get(f"/dashboard{page}").headers["Location"]
    [fields] = forms(press(client, way, "/sign-in", key="wrong").text).values()
    answer = client.post("/dashboard/sign-in", data={**fields, "key": ALICE[0]})
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/dashboard{page}")


@pytest.mark.parametrize("query", ["id=a\r\nSet-Cookie: x=y", "id=\x00", "id=é", f"id={'x' * 5_000}"])
def test_a_query_that_is_none_is_left_out_of_the_way_back(guarded: Deployment, query: str) -> None:
    """What ends a line of a header, or is too much for the form."""
    client = guarded.client()
    way = f"/dashboard/sign-in?{urlencode({'next': f'/jobs?{query}'})}"
    assert press(client, way, "/sign-in", key=ALICE[0]).headers["Location"] == "/dashboard/jobs"


@pytest.mark.parametrize(
    "key",
    ["", "x", "é", pytest.param(ALICE[1], id="the hash"), pytest.param(f"{ALICE[0]}x", id="the key and more")],
)
def test_a_wrong_key_signs_nobody_in(guarded: Deployment, key: str) -> None:
    """The hash in the configuration is none either."""
    client = guarded.client()
    answer = sign_in(client, key)
    assert answer.status_code == 403
    assert "This is no API key of this deployment." in answer.text
    assert client.get("/dashboard").status_code == 303


def test_the_cookie_is_for_the_dashboard_and_for_no_script(guarded: Deployment) -> None:
    """It changes at the sign-in, and goes to nobody without encryption where there is one."""
    client = guarded.client()
    client.get("/dashboard/sign-in")
    before = token_of(client)
    set_cookie = sign_in(client, ALICE[0]).headers["Set-Cookie"]
    assert re.fullmatch(r"aj_dashboard=[\w-]{43}; HttpOnly; Path=/dashboard; SameSite=Strict", set_cookie)
    assert token_of(client) != before
    secure = guarded.client().get("/dashboard/sign-in", base_url="https://localhost")
    assert "; Secure; " in secure.headers["Set-Cookie"]


def test_signing_out_ends_the_session(guarded: Deployment) -> None:
    """For whoever has kept the cookie, too; and every process knows."""
    client = signed_in(guarded, ALICE[0])
    assert "alice" in client.get("/dashboard").text
    token = token_of(client)
    other = guarded.client()
    other.set_cookie("aj_dashboard", token, path="/dashboard")
    assert other.get("/dashboard").status_code == 200
    assert press(client, "/dashboard", "/sign-out").status_code == 303
    assert other.get("/dashboard").status_code == 303
    assert client.get("/dashboard").status_code == 303


def test_signing_in_as_somebody_else_ends_the_session_before(guarded: Deployment) -> None:
    """Whoever has kept its cookie is not alice any more either."""
    client = signed_in(guarded, ALICE[0])
    token = token_of(client)
    [fields] = forms(client.get("/dashboard").text).values()
    assert client.post("/dashboard/sign-in", data={**fields, "key": BOB[0]}).status_code == 303
    assert "bob" in client.get("/dashboard").text
    other = guarded.client()
    other.set_cookie("aj_dashboard", token, path="/dashboard")
    assert other.get("/dashboard").status_code == 303


def test_the_way_back_counts_from_the_dashboard_whatever_the_prefix_is(guarded: Deployment) -> None:
    """Also where that has the dashboard's name in it."""
    app = Flask("host")
    app.register_blueprint(JobsBlueprint(Settings.from_env(guarded.env)), url_prefix="/dashboards/dashboard")
    answer = app.test_client().get("/dashboards/dashboard/dashboard/deliveries")
    assert answer.headers["Location"] == "/dashboards/dashboard/dashboard/sign-in?next=%2Fdeliveries"


def test_a_session_ends_with_its_key(guarded: Deployment) -> None:
    """A key that is taken out of the configuration lets nobody in, also under the same name."""
    token = token_of(signed_in(guarded, ALICE[0]))
    for keys in (f"alice:{new_key()[1]},olga:{OLGA[1]}", f"olga:{OLGA[1]}"):
        client = guarded.client(AJ_API_KEYS=keys)
        client.set_cookie("aj_dashboard", token, path="/dashboard")
        assert client.get("/dashboard").status_code == 303


def test_the_store_holds_no_token(guarded: Deployment) -> None:
    """Whoever reads it cannot take the place of a browser; what it holds goes by itself."""
    token = token_of(signed_in(guarded, ALICE[0]))
    [name] = guarded.keys("session:*")
    assert token not in name
    told = guarded.redis.get(name)
    assert isinstance(told, bytes)
    assert token.encode() not in told
    assert 0 < int(str(guarded.redis.ttl(name))) <= 12 * 3600


def test_a_page_that_says_that_the_store_is_away_has_its_looks(guarded: Deployment) -> None:
    """Nobody has to be known for them. An action that met such a store is not asked for again."""
    away = guarded.client(AJ_REDIS_URL="redis://127.0.0.1:1")
    away.set_cookie("aj_dashboard", "x" * 43, path="/dashboard")
    assert away.get("/dashboard/static/dashboard.css").status_code == 200
    shown, asked = away.get("/dashboard"), away.post("/dashboard/sign-out")
    assert [answer.status_code for answer in (shown, asked)] == [503, 503]
    assert "data-again" in shown.text
    assert "data-again" not in asked.text
    assert "http-equiv" not in asked.text


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_from_elsewhere_signs_nobody_out(guarded: Deployment, site: str) -> None:
    """A strict cookie does not come along, and must not be replaced; the page asks to come again from here."""
    client = guarded.client()
    answer = client.get("/dashboard/jobs", headers={"Sec-Fetch-Site": site})
    assert (answer.status_code, answer.headers["Refresh"]) == (200, "0")
    assert "Set-Cookie" not in answer.headers
    assert client.get("/dashboard/jobs", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 303


# -- whose jobs ----------------------------------------------------------------------------------------------


def test_a_caller_sees_and_stops_its_own_jobs_only(guarded: Deployment) -> None:
    """Lists, pages, results, counts, webhooks that are owed, and actions."""
    his = run(guarded, caller(guarded, BOB[0]), n=6, callback_url="http://127.0.0.1:9/hook")["job_id"]
    waiting = submit(caller(guarded, BOB[0]), n=7)
    hers = submit(caller(guarded, ALICE[0]), n=5)
    client = signed_in(guarded, ALICE[0])
    for path in ("", "/jobs", "/deliveries", "/deliveries?state=delivered", f"/jobs?id={his[:8]}", "/jobs?owner=bob"):
        text = client.get(f"/dashboard{path}").text
        assert his not in text
        assert waiting not in text
        assert "bob" not in text.replace("owner=bob", "")
    assert hers in client.get("/dashboard").text
    assert "Active 1" in shown(client)
    assert "Workers" not in shown(client)
    for path in (f"/jobs/{his}", f"/jobs/{his}/result", f"/jobs/{waiting}"):
        assert client.get(f"/dashboard{path}").status_code == 404
    [(_, fields)] = [each for each in forms(client.get(f"/dashboard/jobs/{hers}").text).items() if "cancel" in each[0]]
    assert client.post(f"/dashboard/jobs/{waiting}/cancel", data=fields).status_code == 404
    assert client.post(f"/dashboard/jobs/{his}/deliveries", data=fields).status_code == 404
    assert document(caller(guarded, BOB[0]), waiting)["status"] == "queued"
    assert his in signed_in(guarded, BOB[0]).get("/dashboard/deliveries").text


def test_only_who_sees_everything_sees_which_worker_ran_a_job(guarded: Deployment) -> None:
    """Its name has the host and the process in it."""
    job_id = submit(caller(guarded, ALICE[0]), n=5)
    take_and_vanish(guarded)
    pages = {
        name: shown(signed_in(guarded, key), f"/jobs/{job_id}")
        for name, key in (("alice", ALICE[0]), ("olga", OLGA[0]))
    }
    assert {name: "Worker" in page for name, page in pages.items()} == {"alice": False, "olga": True}


def test_a_caller_sees_the_webhooks_that_it_is_owed_whatever_others_are(guarded: Deployment) -> None:
    """And learns nothing of theirs: neither that there are any nor how many."""
    alice, bob = caller(guarded, ALICE[0]), caller(guarded, BOB[0])
    url = "http://127.0.0.1:9/hook"
    theirs, [mine] = [ended(guarded, bob, url) for _ in range(3)], [ended(guarded, alice, url)]
    waiting = submit(alice, n=5, callback_url=url)
    client = signed_in(guarded, ALICE[0])
    text = shown(client, "/deliveries")
    assert [each in text for each in (*theirs, mine, waiting)] == [False] * 3 + [True, False]
    assert client.get("/dashboard/deliveries?cursor=1").status_code == 400
    assert "No webhook is owed." not in text
    # From where it is owed, which is not the end of the job where it is sent again.
    guarded.redis.zadd(Keys(guarded.settings.prefix).pending, {mine: 86_400_000 * 366})
    assert 'datetime="1971-01-02T00:00:00.000Z" title="since' in client.get("/dashboard/deliveries").text
    for _ in range(4):
        [claimed], _ = outbox_of(guarded).claim(1, 30)
        outbox_of(guarded).record(claimed, Attempt(CallbackState.DELIVERED, 200, 1))
    assert "No webhook is owed." in shown(client, "/deliveries")


def test_an_operator_sees_all_and_may_act_on_all(guarded: Deployment) -> None:
    """With whose each is, and a filter for it; in the API the same key is a caller like the others."""
    his, hers = run(guarded, caller(guarded, BOB[0]), n=6)["job_id"], submit(caller(guarded, ALICE[0]), n=5)
    client = signed_in(guarded, OLGA[0])
    assert "No worker is alive" in shown(client)
    text = shown(client, "/jobs")
    assert his in text
    assert hers in text
    assert hers not in shown(client, "/jobs?owner=bob")
    assert "No job is like that." in shown(client, "/jobs?owner=nobody")
    assert client.get(f"/dashboard/jobs/{his}/result").data == b"36"
    assert press(client, f"/dashboard/jobs/{hers}", "/cancel").status_code == 303
    assert document(caller(guarded, ALICE[0]), hers)["status"] == "failed"
    assert caller(guarded, OLGA[0]).get(f"/jobs/{his}").status_code == 404


def test_the_api_takes_no_session(guarded: Deployment) -> None:
    """A cookie is for pages; what the API is told stands in `Authorization`."""
    client = signed_in(guarded, ALICE[0])
    client.set_cookie("aj_dashboard", token_of(client), path="/")
    assert client.get("/jobs").status_code == 401
