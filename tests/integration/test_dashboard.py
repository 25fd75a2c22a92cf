"""The pages of the dashboard: what they show, that they show it as text, and the fields that guard them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask, Response
from flask.testing import FlaskClient

from aj import JobsBlueprint, create_app
from aj.dashboard.render import POLICY
from aj.job import CallbackState
from aj.settings import Settings
from aj.store import Attempt, Keys
from tests.conftest import Deployment
from tests.support import tasks_past_samples
from tests.support.deliveries import ended, outbox_of
from tests.support.host_app import HTML, PROBLEM, host_app
from tests.support.inside import starts
from tests.support.jobs import run, submit, work_off
from tests.support.pages import shown
from tests.support.processes import running_worker
from tests.support.sweeping import make_sweep, take_and_vanish
from tests.support.waiting import wait_until

EVIL = "</code><script>alert(1)</script><img src=x onerror=alert(2)>'\""
NOBODYS = "018f2b5e-0000-7000-8000-000000000000"
PATHS = ("", "/jobs", "/deliveries")


# -- what is shown -------------------------------------------------------------------------------------------


def test_an_empty_deployment_says_what_to_do(client: FlaskClient, deployment: Deployment) -> None:
    """That nobody works, and how to submit a first job."""
    text = shown(client)
    assert f"No worker is alive for {deployment.queue}" in text
    assert "python -m aj.worker" in text
    assert "curl -i -H 'Content-Type: application/json' -d '{\"n\": 5}' http://localhost/jobs" in text
    assert "No job yet." in shown(client, "/jobs")
    assert "No webhook is owed." in shown(client, "/deliveries")


def test_where_no_first_command_is_known_the_tasks_are_named(deploy: Callable[..., Deployment]) -> None:
    """None is shown that the API would refuse, nor is the page kept from whoever looks."""
    client = deploy(AJ_TASKS=tasks_past_samples.__name__).client()
    for path in ("", "/jobs"):
        assert "No job yet. The list of tasks says what can be submitted." in shown(client, path)
        assert '<a href="/tasks">' in client.get(f"/dashboard{path}").text
    assert client.get("/tasks").status_code == 200


def test_the_overview_counts_what_waits_and_what_ended(client: FlaskClient, deployment: Deployment) -> None:
    """In this minute and in the last hour, with the same in words for whoever cannot see the plots."""
    run(deployment, client, n=5)
    run(deployment, client, task="fail", text="x")
    submit(client, n=6)
    text = shown(client)
    assert re.search(r"Waiting 1 the oldest for \d+ s", text)
    assert "Succeeded 1 in the last hour, at most 1 a minute" in text
    html = client.get("/dashboard").text
    assert 'aria-label="1 jobs failed in the last hour, at most 1 in a minute, at ' in html


def test_a_worker_is_shown_with_the_job_that_it_has(client: FlaskClient, deployment: Deployment, folder: Path) -> None:
    """Its host and process, what it runs and since when; to another deployment it is nobody."""
    path = folder / "go"
    with running_worker(deployment.env, folder, "--only", "jobs") as worker:
        assert "waits for a job" in shown(client)
        job_id = submit(client, task="wait_for_file", path=str(path))
        wait_until(lambda: starts(path), what="a running job")
        text = shown(client)
        other = create_app(Settings.from_env({**deployment.env, "AJ_PREFIX": "another"})).test_client()
        assert "No worker is alive" in shown(other)
        path.touch()
        wait_until(lambda: client.get(f"/jobs/{job_id}").json["status"] == "succeeded", what="the end")  # type: ignore[index]
        assert worker.stop() == 0
    assert "No worker is alive" not in text
    assert re.search(rf"wait_for_file {job_id} for \d+ s", text)
    assert "No worker is alive" in shown(client)


def test_a_job_that_nobody_is_heard_to_run_stands_on_the_overview(client: FlaskClient, deployment: Deployment) -> None:
    """Whoever had it in hand is among no workers any more. The number of those that run leads to it."""
    job_id = submit(client, n=5)
    take_and_vanish(deployment)
    young = submit(client, n=6)
    text = shown(client)
    assert re.search(rf"worker not heard of .* square {job_id} \d+ s", text)
    assert 'href="/dashboard/jobs?status=running">1<' in client.get("/dashboard").text
    listed = shown(client, "/jobs?status=running")
    assert (job_id in listed, young in listed) == (True, False)
    work_off(deployment)
    make_sweep(deployment).once()
    assert "not heard of" not in shown(client)


def test_a_job_is_shown_whole(client: FlaskClient, deployment: Deployment) -> None:
    """While it waits with its parameters, after its end with its result; the exchange is the one of the API."""
    job_id = submit(client, n=7, metadata={"order": 17}, callback_url="http://127.0.0.1:9/hook?token=hunter2")
    text = shown(client, f"/jobs/{job_id}")
    assert '{"n": 7}' in text
    assert '{"order": 17}' in text
    assert f"curl -i http://localhost/jobs/{job_id} HTTP/1.1 200 OK" in text
    assert "hunter2" not in client.get(f"/dashboard/jobs/{job_id}").text
    work_off(deployment)
    text = shown(client, f"/jobs/{job_id}")
    assert all(each in text for each in ("Submitted", "Attempt 1 started", "Succeeded", "Webhook is due", "Expires"))
    assert "No longer kept" in text
    assert client.get(f"/jobs/{job_id}").text in text.replace("  ", " ")
    assert client.get(f"/dashboard/jobs/{job_id}/result").data == b"49"


def test_a_failed_job_says_why_and_keeps_its_parameters(client: FlaskClient, deployment: Deployment) -> None:
    """Whoever looks into it may want them."""
    job_id = run(deployment, client, task="fail", text="no such album", public=True)["job_id"]
    text = shown(client, f"/jobs/{job_id}")
    assert "The task raised an exception" in text
    assert "TaskError: no such album" in text
    assert '"text": "no such album"' in text
    assert client.get(f"/dashboard/jobs/{job_id}/result").status_code == 404


def test_a_long_result_is_cut_and_its_whole_is_a_link(client: FlaskClient, deployment: Deployment) -> None:
    """A page stays small, however much a task returns."""
    job_id = run(deployment, client, task="give_bytes", size=900_000)["job_id"]
    page = client.get(f"/dashboard/jobs/{job_id}")
    assert len(page.data) < 60_000
    assert "900.0 kB" in page.text
    whole = client.get(f"/dashboard/jobs/{job_id}/result")
    assert (len(whole.data), whole.content_type) == (900_002, "application/json")


def test_jobs_are_found_by_status_task_and_id(client: FlaskClient, deployment: Deployment) -> None:
    """By the whole id at once, by its beginning in the list; what is no such thing finds nothing."""
    good, bad = (run(deployment, client, **each)["job_id"] for each in ({"n": 1}, {"task": "fail", "text": "x"}))
    assert good in shown(client, "/jobs")
    assert good not in shown(client, "/jobs?status=failed&task=fail")
    assert bad in shown(client, "/jobs?status=failed&task=fail")
    assert client.get(f"/dashboard/jobs?id={good.upper()}").headers["Location"] == f"/dashboard/jobs/{good}"
    assert good in shown(client, f"/jobs?id={good[:23]}")
    assert bad not in shown(client, f"/jobs?id={good[:23]}")
    assert "No job is like that." in shown(client, "/jobs?id=0000")
    for query in ("id=%2A", "status=x", "task=nobody", "id=%00"):
        assert "No job is like that." in shown(client, f"/jobs?{query}")


def test_a_page_of_jobs_leads_to_the_older_ones(client: FlaskClient) -> None:
    """Fifty at a time, each once."""
    ids = sorted(submit(client, n=n) for n in range(53))
    first = client.get("/dashboard/jobs?status=queued").text
    assert [each in first for each in ids] == [False] * 3 + [True] * 50
    [link] = [each.split('"')[0] for each in first.split('rel="next" href="')[1:]]
    second = client.get(link.replace("&amp;", "&")).text
    assert [each in second for each in ids] == [True] * 3 + [False] * 50
    assert client.get("/dashboard/jobs?cursor=x").status_code == 400
    assert "There are no older ones. All jobs" in shown(client, f"/jobs?cursor={ids[0]}")


def test_webhooks_are_listed_by_how_they_stand(client: FlaskClient, deployment: Deployment) -> None:
    """Those that are owed with their next attempt, the others of recent jobs with their last answer."""
    url = "http://127.0.0.1:9/hook"
    lost, owed = ended(deployment, client, url), ended(deployment, client, url)
    outbox = outbox_of(deployment)
    [claimed], _ = outbox.claim(1, 30)
    log = json.dumps({"at": "2026-11-30T12:00:00.000Z", "error": "connect", "duration_s": 0.01}).encode()
    outbox.record(claimed, Attempt(CallbackState.EXHAUSTED, None, 1, log=log))
    assert owed in shown(client, "/deliveries")
    assert lost not in shown(client, "/deliveries")
    text = shown(client, "/deliveries?state=exhausted")
    assert lost in text
    assert "no connection" in text
    assert owed not in text
    assert "Webhook attempt 1 no connection, after 10 ms" in shown(client, f"/jobs/{lost}")
    assert client.get("/dashboard/deliveries?state=x").status_code == 400
    deployment.redis.delete(Keys(deployment.settings.prefix).job(owed))
    assert "deleted, or past its life" in shown(client, "/deliveries")
    for name in (Keys(deployment.settings.prefix).delivery(owed), Keys(deployment.settings.prefix).pending):
        deployment.redis.delete(name)


# -- text is text --------------------------------------------------------------------------------------------


def test_whatever_a_caller_or_a_task_says_is_text(client: FlaskClient, deployment: Deployment) -> None:
    """In parameters, metadata, addresses, results, errors, progress, queries and names of tasks."""
    ids = [
        submit(client, task="give", value="text", metadata={EVIL: EVIL}, callback_url=f"http://127.0.0.1:9/{'<b>'}"),
        submit(client, task="fail", text=EVIL, public=True),
        submit(client, task="fail", text="\u0000\u202e\ud83d\ude00", public=True),
    ]
    running = submit(client, n=1)
    pages = [client.get(f"/dashboard/jobs/{each}").text for each in ids]
    work_off(deployment)
    name = Keys(deployment.settings.prefix).job(running)
    deployment.redis.hset(
        name, mapping={"progress": json.dumps({"fraction": 0.5, "message": EVIL}), "outcome": json.dumps(EVIL)}
    )
    pages += [client.get(f"/dashboard/jobs/{each}").text for each in [*ids, running]]
    pages += [client.get("/dashboard/jobs", query_string=dict.fromkeys(("id", "task", "status", "owner"), EVIL)).text]
    pages += [client.get(f"/dashboard{path}").text for path in PATHS]
    pages += [client.get("/dashboard/nobody", query_string={"x": EVIL}).text]
    assert any("alert(1)" in page for page in pages)
    for page in pages:
        assert page.count("<script") == 1
        assert "<img" not in page
        assert "<b>" not in page
        assert "style=" not in page
        assert " onerror=alert" not in page.replace("&lt;img src=x onerror", "")


def test_nothing_that_is_shown_turns_around_what_is_read(client: FlaskClient, deployment: Deployment) -> None:
    """Marks of direction and control characters are escaped; ends of line and what joins letters stay."""
    job_id = run(deployment, client, task="fail", text="a\u202eb\u0000c\n\u200dd", public=True)["job_id"]
    text = client.get(f"/dashboard/jobs/{job_id}").text
    assert not set(text) & set("\u202e\u0000")
    assert "a\\u202eb\\u0000c\n\u200dd</p>" in text


def test_half_a_surrogate_pair_breaks_no_page(client: FlaskClient, deployment: Deployment) -> None:
    """JSON may hold one, and HTML in UTF-8 cannot."""
    job_id = run(deployment, client, n=1)["job_id"]
    deployment.redis.hset(Keys(deployment.settings.prefix).job(job_id), "outcome", b'"\\ud800"')
    assert client.get(f"/dashboard/jobs/{job_id}").status_code == 200


# -- fields and tags -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*PATHS, f"/jobs/{NOBODYS}", "/nobody", "/static/dashboard.js", "/static/nobody"])
def test_every_answer_is_guarded(client: FlaskClient, path: str) -> None:
    """No inline code, no other host, no frame around it, nothing kept where data are shown."""
    answer = client.get(f"/dashboard{path}")
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert answer.headers["Cache-Control"] == ("no-cache" if path.endswith(".js") else "no-store")


def test_a_page_that_has_not_changed_is_304(client: FlaskClient, deployment: Deployment) -> None:
    """However long ago things happened: the script of the page counts that up by itself."""
    job_id = run(deployment, client, n=1)["job_id"]
    first = client.get(f"/dashboard/jobs/{job_id}")
    again = client.get(f"/dashboard/jobs/{job_id}", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    assert again.headers["Content-Security-Policy"] == POLICY
    client.delete(f"/jobs/{job_id}")
    assert client.get(f"/dashboard/jobs/{job_id}", headers={"If-None-Match": first.headers["ETag"]}).status_code == 410


def test_what_is_not_there_is_a_page(client: FlaskClient, deployment: Deployment) -> None:
    """404, 405 and 410 are for people here, and problem documents beside it."""
    job_id = run(deployment, client, n=1)["job_id"]
    client.delete(f"/jobs/{job_id}")
    answers = [
        (client.get("/dashboard/nobody"), 404),
        (client.get(f"/dashboard/jobs/{NOBODYS}"), 404),
        (client.get("/dashboard/jobs/x"), 404),
        (client.get(f"/dashboard/jobs/{job_id}"), 410),
        (client.delete("/dashboard/jobs"), 405),
    ]
    assert [(answer.status_code, answer.content_type) for answer, _ in answers] == [(code, HTML) for _, code in answers]
    assert answers[-1][0].headers["Allow"]
    assert [client.get(path).content_type for path in ("/nobody", "/dashboards")] == [PROBLEM] * 2


def test_an_address_with_a_slash_at_its_end_is_the_same_page(client: FlaskClient) -> None:
    """People type them."""
    for path in PATHS:
        assert client.get(f"/dashboard{path}/").text.partition("<main")[2].partition("</main")[0] in (
            client.get(f"/dashboard{path}").text
        )


def test_a_store_that_is_away_is_a_page_that_says_so(deployment: Deployment) -> None:
    """And that tries again, with the script of the page or without."""
    client = deployment.client(AJ_REDIS_URL="redis://127.0.0.1:1")
    answer = client.get("/dashboard")
    assert (answer.status_code, answer.content_type) == (503, HTML)
    assert answer.text.count("The job store cannot be used at the moment") == 3  # title, heading, what is read out
    assert '<p data-say="The job store cannot be used at the moment">Try again a little later.</p>' in answer.text
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in answer.text
    assert answer.headers["Retry-After"]


# -- as a guest ----------------------------------------------------------------------------------------------


@pytest.fixture
def app(deployment: Deployment) -> Flask:
    app = host_app(deployment.env)
    app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    return app


def test_every_address_counts_prefix_and_proxy(app: Flask) -> None:
    """Links, forms, the cookie's path, the command lines."""
    client = app.test_client()
    job_id = client.post("/api/jobs", json={"n": 5}).headers["Location"].rpartition("/")[2]
    for path in ("/api/dashboard", f"/api/dashboard/jobs/{job_id}", "/api/dashboard/jobs", "/api/dashboard/nobody"):
        answer = client.get(path, environ_overrides={"SCRIPT_NAME": "/shop"})
        links = [each.split('"')[0] for mark in ('href="', 'src="', 'action="') for each in answer.text.split(mark)[1:]]
        assert all(each.startswith(("/shop/api/dashboard", "#", "?")) or not each for each in links), links
        if "Set-Cookie" in answer.headers:
            assert "; Path=/shop/api/dashboard" in answer.headers["Set-Cookie"]
    assert (
        f"http://localhost/shop/api/jobs/{job_id}"
        in client.get(f"/api/dashboard/jobs/{job_id}", environ_overrides={"SCRIPT_NAME": "/shop"}).text
    )


@pytest.mark.parametrize("page", ["", "/jobs", "/jobs/{job_id}", "/jobs?id={job_id}", "/nobody"])
def test_what_the_host_adds_to_addresses_stays_out_of_ours(app: Flask, page: str) -> None:
    """As a language in the query of each: links, the cookie's path and where an action leads stay whole."""
    app.url_defaults(lambda _, values: values.setdefault("lang", "de"))
    client = app.test_client()
    job_id = client.post("/api/jobs", json={"n": 5}).headers["Location"].rpartition("/")[2]
    answer = client.get("/api/dashboard" + page.format(job_id=job_id))
    assert "lang=de" not in answer.text
    assert "lang=de" not in str(answer.headers)


def test_nothing_of_the_host_changes_the_pages(app: Flask, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Templates of the same names, filters, error pages, and hooks that write policies of their own."""
    folder = tmp_path_factory.mktemp("templates")
    for name in ("base.html", "overview.html", "error.html", "parts.html"):
        (folder / name).write_text("the host's")
    app.template_folder = str(folder)
    app.jinja_env.autoescape = False
    app.jinja_env.filters["ago"] = lambda *_: "the host's"
    app.register_error_handler(Exception, lambda error: ("the host's", 500))

    @app.after_request
    def policy(answer: Response) -> Response:
        answer.headers["Content-Security-Policy"] = "default-src *"
        answer.headers["Cache-Control"] = "public, max-age=600"
        return answer

    client = app.test_client()
    for path in ("", "/jobs", "/jobs/x", "/nobody"):
        answer = client.get(f"/api/dashboard{path}")
        assert "the host's" not in answer.text
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["Cache-Control"] == "no-store"
    assert client.get("/api/dashboard/static/dashboard.js").headers["Cache-Control"] == "no-cache"
    assert client.get("/").headers["Content-Security-Policy"] == "default-src *"


def test_without_the_dashboard_its_address_is_the_hosts(deploy: Callable[..., Deployment]) -> None:
    """`AJ_DASHBOARD=off` leaves nothing of it."""
    app = host_app(deploy(AJ_DASHBOARD="off").env)
    app.add_url_rule("/api/dashboard", view_func=lambda: "mine", endpoint="dashboard")
    app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    client = app.test_client()
    assert client.get("/api/dashboard").text == "mine"
    assert client.get("/api/dashboard/jobs").content_type == PROBLEM
