"""The HTTP door: a request becomes values, one verb is called, its answer becomes a response.

Mounts in any Flask app under any prefix. Decides nothing about jobs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

from flask import Blueprint, Response, current_app, request, url_for
from flask.blueprints import BlueprintSetupState
from werkzeug.exceptions import HTTPException, PreconditionFailed
from werkzeug.routing import RequestRedirect

from aj import clock
from aj.body import parse_object, read_body
from aj.egress import Egress
from aj.errors import JobGone, JobUnknown, NotReady, Problem, SettingsError, UnsupportedMedia
from aj.headers import idempotency_key
from aj.job import is_job_id, to_json
from aj.pace import retry_after_s
from aj.problems import http_exception_response, internal_error_response, problem_response
from aj.registry import Registry
from aj.settings import Settings
from aj.store import Found, Jobs, Keys, connect, unready_because
from aj.submit import Submit
from aj.version import USER_AGENT

log = logging.getLogger("aj.blueprint")
EXTENSION = "aj"


@dataclass(frozen=True, slots=True)
class Api:
    """What the routes of one blueprint work with."""

    settings: Settings
    submit: Submit
    find: Callable[[str], Found]
    unready_because: Callable[[], dict[str, str]]


class JobsBlueprint(Blueprint):
    """The routes of the contract, for your own app: `app.register_blueprint(JobsBlueprint(), url_prefix="/api")`.

    Settings come from the argument, else from the app's config: `AJ_REDIS_URL` and the others.
    Every error below the prefix is a problem document; where there is no prefix, every error below `/jobs`.
    Registering it raises SettingsError where a setting is wrong.
    """

    def __init__(self, settings: Settings | None = None, name: str = "aj", *, owns_app: bool = False) -> None:
        super().__init__(name, __name__)
        self._settings, self._owns_app = settings, owns_app
        for path, endpoint, view, method in (
            ("/jobs", "submit", _submit_job, "POST"),
            ("/jobs/<string:job_id>", "status", _job_status, "GET"),
            ("/healthz", "health", _health, "GET"),
            ("/readyz", "ready", _ready, "GET"),
        ):
            # Merging slashes would be a redirect, and to whatever the Host header says.
            self.add_url_rule(path, endpoint, view, methods=[method], merge_slashes=False)
        self.register_error_handler(Problem, problem_response)
        self.register_error_handler(HTTPException, http_exception_response)
        self.register_error_handler(Exception, _unforeseen)
        self.after_request(_options_without_type)
        self.record(self._set_up)

    def _set_up(self, state: BlueprintSetupState) -> None:
        name = f"{state.name_prefix}.{state.name}".lstrip(".")
        apis = state.app.extensions.setdefault(EXTENSION, {})
        apis[name] = make_api(self._settings or Settings.from_config(state.app.config))
        prefix = (state.url_prefix or "").rstrip("/")
        if "<" in prefix:
            raise SettingsError(f"the blueprint cannot be registered below {prefix!r}, which has a variable part")
        if self._owns_app:
            state.app.url_map.merge_slashes = False
        ours = prefix if prefix or self._owns_app else "/jobs"
        # Routing fails before a blueprint is chosen, so its error handlers never see these.
        state.app.before_request(partial(_routing_error, ours))


def make_api(settings: Settings) -> Api:
    """Builds what the routes need; opens no connection yet.

    Raises: SettingsError: no store is named, or a task stands for a queue that nobody serves.
    """
    registry = Registry.load(settings.tasks)
    for task in registry:
        if task.queue is not None and task.queue not in settings.queues:
            raise SettingsError(f"task {task.name!r} names the queue {task.queue!r}, which AJ_QUEUES lacks")
    client = connect(settings.redis_url)
    jobs = Jobs(client, Keys(settings.prefix))
    egress = Egress(settings.callback_allow, settings.callback_timeout_s, USER_AGENT)
    submit = Submit(settings, registry, jobs, egress.check_url)
    return Api(settings, submit, jobs.find, partial(unready_because, client, settings.queues))


def _submit_job() -> Response:
    api = _api()
    if request.mimetype != "application/json" and request.headers.get("Content-Type", "").strip():
        raise UnsupportedMedia(f"The Content-Type is {request.content_type!r}; send application/json.")
    if request.headers.get("Content-Encoding", "").strip().lower() not in ("", "identity"):
        raise UnsupportedMedia("The body has a Content-Encoding; send it as it is.")
    members = parse_object(read_body(request.environ, api.settings.max_body_bytes))
    accepted = api.submit(members, idempotency_key(request.headers.get("Idempotency-Key")))
    answer = _json(to_json({"job_id": accepted.job_id, "status": "queued"}), 202)
    answer.headers["Location"] = url_for(".status", job_id=accepted.job_id)
    answer.headers["Retry-After"] = str(retry_after_s(0))
    answer.headers["Cache-Control"] = "no-store"
    if accepted.replayed:
        answer.headers["Idempotent-Replayed"] = "true"
    return answer


def _job_status(job_id: str) -> Response:
    if not is_job_id(job_id):
        raise JobUnknown("No job has an id of this form.")
    found = _api().find(job_id)
    if found.job is None and found.expired_ms is not None:
        raise JobGone("The job ended and its result is past its life.", clock.rfc3339(found.expired_ms))
    if found.job is None:
        raise JobUnknown("No job has this id, or it ended so long ago that nothing is known of it.")
    document = found.job.document()
    answer = _json(document, 200)
    answer.headers["Cache-Control"] = "no-cache"
    if not found.job.status.is_final:
        answer.headers["Retry-After"] = str(retry_after_s(found.age_s))
    etag = blake2b(document, digest_size=16).hexdigest()
    if request.headers.get("If-Match", "*").strip() != "*" and not request.if_match.contains(etag):
        raise PreconditionFailed("The job's document is not the one that If-Match names.")
    answer.set_etag(etag)
    if request.if_none_match.contains_weak(etag):
        answer.status_code = 304
        answer.set_data(b"")
        answer.headers.pop("Content-Length", None)
    return answer


def _health() -> Response:
    """The process answers; nothing else is asked."""
    return _uncached(_json(to_json({"status": "ok"}), 200))


def _ready() -> Response:
    wrong = _api().unready_because()
    if wrong:
        raise NotReady("; ".join(f"{name}: {what}" for name, what in wrong.items()), wrong)
    return _uncached(_json(to_json({"status": "ready"}), 200))


def _uncached(answer: Response) -> Response:
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _api() -> Api:
    api = current_app.extensions[EXTENSION][request.blueprint]
    assert isinstance(api, Api)
    return api


def _json(document: bytes, status: int) -> Response:
    return Response(document, status=status, content_type="application/json")


def _options_without_type(answer: Response) -> Response:
    if request.method == "OPTIONS":
        answer.headers.pop("Content-Type", None)
    return answer


def _unforeseen(error: Exception) -> Response:
    log.error("%s %s broke", request.method, request.path, exc_info=error)
    return internal_error_response()


def _routing_error(ours: str) -> Response | None:
    """Answers 404 and 405 below `ours` as problems; leaves the rest of the app as it is."""
    error = request.routing_exception
    if not isinstance(error, HTTPException) or isinstance(error, RequestRedirect):
        return None
    if request.path == ours or request.path.startswith(ours + "/"):
        return http_exception_response(error)
    return None
