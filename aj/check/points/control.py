"""Level complete, what can be done to a job: cancel it, forget it, list it, fetch its bare result."""

from __future__ import annotations

from urllib.parse import urljoin

from aj.check.exchange import Exchange
from aj.check.links import link_to
from aj.check.point import Level, Played, point
from aj.check.profile import at
from aj.check.scene import Scene, pause
from aj.check.story import Job, Story
from aj.check.verdicts import Skip, expect, expect_status
from aj.clock import monotonic_s


@point(Level.COMPLETE, "docs/contract.md §3", "cancel")
def cancel(scene: Scene) -> Played:
    """A job that is cancelled ends as failed, and says that it was cancelled."""
    job = scene.submit_slow()
    exchange = _cancel(scene, job)
    if exchange.status == 409:
        scene.expect_slow(job)
    expect_status(exchange, 200, when="cancelling an active job")
    return exchange, _expect_cancelled(scene, scene.follow(job))


@point(Level.COMPLETE, "RFC 9110 §9.2.2, docs/contract.md §3", "cancel")
def cancel_again(scene: Scene) -> Played:
    """To cancel a job once more does no harm."""
    job = scene.submit_slow()
    first = _cancel(scene, job)
    if first.status != 200:
        raise Skip("see cancel")
    again = _cancel(scene, job)
    expect_status(again, 200, when="cancelling it again")
    return again, _expect_cancelled(scene, scene.follow(job))


@point(Level.COMPLETE, "RFC 9110 §15.5.10, docs/contract.md §3", "cancel")
def cancel_ended(scene: Scene) -> Played:
    """A job that has ended otherwise is not cancelled: 409, and it stays as it was."""
    end = scene.quick.end
    exchange = _cancel(scene, scene.quick.job)
    expect_status(exchange, 409, when="cancelling a job that has ended")
    after = scene.look(scene.quick.job)
    expect(scene.status(after) == scene.status(end), "and the job changed", exchange, after)
    return exchange


@point(Level.COMPLETE, "RFC 9110 §15.5.10, docs/contract.md §3", "delete")
def delete_active(scene: Scene) -> Played:
    """A job that has not ended cannot be forgotten: 409, and it goes on."""
    job = scene.submit_slow()
    before, exchange = scene.look(job), _delete(scene, job)
    if exchange.status != 409:
        scene.expect_slow(job, before)
    expect_status(exchange, 409, when="deleting an active job")
    after = scene.look(job)
    expect(after.status == 200, f"and then it is {after.told()}", exchange, after)
    return exchange


@point(Level.COMPLETE, "RFC 9110 §13.1.1, docs/contract.md §3", "delete etag")
def delete_unless_changed(scene: Scene) -> Played:
    """With an If-Match that does not match, nothing is done: 412."""
    job = _ended(scene).job
    exchange = scene.play("DELETE", scene.path(scene.profile.paths.delete, job.id), (("If-Match", '"another"'),))
    expect_status(exchange, 412, when="DELETE with another ETag")
    expect_status(scene.look(job), 200, when="after the 412")
    return exchange


@point(Level.COMPLETE, "RFC 9110 §15.5.11, docs/contract.md §3", "delete")
def gone(scene: Scene) -> Played:
    """A job that was forgotten is 410 and says since when, and never 404."""
    job = _ended(scene).job
    deleted = _delete(scene, job)
    expect(200 <= deleted.status < 300, f"DELETE is {deleted.told()}", deleted)
    exchange = scene.look(job)
    expect_status(exchange, 410, when="after DELETE")
    expect(isinstance(at(exchange.document, "expired_at"), str), "there is no expired_at", exchange)
    expect(exchange.field("Retry-After") is None, "there is a Retry-After", exchange)
    return deleted, exchange


@point(Level.COMPLETE, "RFC 9110 §15.5.11, docs/contract.md §3", "expiry")
def expired(scene: Scene) -> Played:
    """A job whose result is past its life is 410 and says since when, and never 404."""
    if scene.options.expiring is None:
        raise Skip("it takes a job whose result lives for a few seconds; --expiring-body says how to submit one")
    story = scene.follow(scene.submit(scene.options.expiring))
    end, until_s = story.end, monotonic_s() + scene.options.job_timeout_s
    exchange = end
    while exchange.status == 200 and monotonic_s() < until_s:
        pause(0.2)
        exchange = scene.look(story.job)
    expect_status(exchange, 410, when="after its life")
    expect(isinstance(at(exchange.document, "expired_at"), str), "there is no expired_at", exchange)
    return end, exchange


@point(Level.COMPLETE, "RFC 9110 §9.2.2, §15.3.5, docs/contract.md §3", "delete")
def delete_again(scene: Scene) -> Played:
    """To forget a job is 204, also once more."""
    job = _ended(scene).job
    for _ in range(2):
        exchange = _delete(scene, job)
        expect_status(exchange, 204, when="DELETE")
    return exchange


@point(Level.COMPLETE, "docs/contract.md §2, §3", "idempotency delete")
def replay_after_the_job(scene: Scene) -> Played:
    """A key whose job is gone brings the first answer still, and no second job."""
    key = ((scene.profile.headers.idempotency, f"gone-{scene.submit().id}"),)
    story = _ended(scene, key)
    _delete(scene, story.job)
    again = scene.send(scene.body(), key)
    expect_status(again, *scene.profile.submit.accepted, when="the key of a job that is gone")
    expect(scene.job_of(again).id == story.job.id, "it made a second job", story.job.submission, again)
    return story.job.submission, again


@point(Level.COMPLETE, "docs/contract.md §3", "bare-result")
def bare_result(scene: Scene) -> Played:
    """The result alone is served too, exactly when the job has succeeded: 409 before and after a failure."""
    end, wanted = scene.quick.end, scene.profile.job.result
    exchange = _result(scene, scene.quick.job)
    expect_status(exchange, 200, when="the result of a job that succeeded")
    expect(exchange.document == at(end.document, wanted), "it is another value than in the document", end, exchange)
    if scene.options.slow is not None:
        slow = scene.submit_slow()
        early = _result(scene, slow)
        if early.status == 200:
            scene.expect_slow(slow)
        expect_status(early, 409, when="the result of an active job")
    if scene.options.failing is not None:
        _ = scene.failing.end
        expect_status(_result(scene, scene.failing.job), 409, when="the result of a job that failed")
    return exchange


@point(Level.COMPLETE, "docs/contract.md §3", "list")
def list_newest_first(scene: Scene) -> Played:
    """The list of jobs begins with the newest, and shows no outcomes."""
    older, newer = scene.submit(), scene.submit()
    exchange = scene.play("GET", scene.profile.paths.list)
    expect_status(exchange, 200)
    jobs = _listed(scene, exchange)
    ids = [at(each, scene.profile.job.id) for each in jobs]
    expect(older.id in ids and newer.id in ids, "what was submitted just now is not in it", exchange)
    expect(ids.index(newer.id) < ids.index(older.id), "an older job comes before a newer one", exchange)
    name = scene.profile.job.result
    shown = name and any(name in each for each in jobs if isinstance(each, dict))
    expect(not shown, "it shows results", exchange)
    return exchange


@point(Level.COMPLETE, "RFC 8288 §3, docs/contract.md §3", "list list-pages")
def list_pages(scene: Scene) -> Played:
    """A page has at most as many jobs as were asked for, and Link leads to the next, without a gap or a repeat."""
    wanted = [scene.submit().id for _ in range(3)]
    url, seen = _asked(scene, "limit=2"), []
    for _ in range(50):
        page = scene.play("GET", url)
        expect_status(page, 200)
        jobs = _listed(scene, page)
        expect(len(jobs) <= 2, f"a page of 2 has {len(jobs)} jobs", page)
        seen += [at(each, scene.profile.job.id) for each in jobs]
        if wanted[0] in seen:
            break
        target = link_to("next", page.field("Link") or "")
        expect(target is not None, 'there is no Link with rel="next", and not all jobs were shown', page)
        url = urljoin(page.request.url, target or "")
        expect(scene.is_ours(url), "the Link leads to another origin", page)
    expect(set(wanted) <= set(seen), "a job is not on the pages", page)
    expect(len(seen) == len(set(seen)), "a job is on two pages", page)
    return page


@point(Level.COMPLETE, "docs/contract.md §3", "list list-pages")
def list_query(scene: Scene) -> Played:
    """A query that makes no sense is 400."""
    for query in ("limit=none", "limit=0", "status=nonsense", "cursor=%00"):
        exchange = scene.play("GET", _asked(scene, query))
        expect_status(exchange, 400, when=query)
    return exchange


def _cancel(scene: Scene, job: Job) -> Exchange:
    method, _, path = scene.profile.paths.cancel.rpartition(" ")
    return scene.play(method or "POST", scene.path(path, job.id), (), b"")


def _delete(scene: Scene, job: Job) -> Exchange:
    return scene.play("DELETE", scene.path(scene.profile.paths.delete, job.id))


def _result(scene: Scene, job: Job) -> Exchange:
    return scene.play("GET", scene.path(scene.profile.paths.result, job.id))


def _ended(scene: Scene, fields: tuple[tuple[str, str], ...] = ()) -> Story:
    """A job of its own that has ended."""
    story = scene.follow(scene.submit(None, fields))
    _ = story.end
    return story


def _expect_cancelled(scene: Scene, story: Story) -> Exchange:
    end, job = story.end, scene.profile.job
    expect(scene.status(end) == "failed", f"it was cancelled, and ended as {scene.status(end)}", end)
    if job.cancelled:
        kind = at(end.document, f"{job.error}.type")
        expect(kind == job.cancelled, f"{job.error}.type is {kind}, not {job.cancelled}", end)
    return end


def _asked(scene: Scene, query: str) -> str:
    """The list with this query, beside the one that the profile may give it."""
    path = scene.profile.paths.list
    return f"{path}{'&' if '?' in path else '?'}{query}"


def _listed(scene: Scene, exchange: Exchange) -> list[object]:
    jobs = at(exchange.document, scene.profile.paths.list_member)
    expect(isinstance(jobs, list), f"{scene.profile.paths.list_member} is not a list", exchange)
    return list(jobs)
