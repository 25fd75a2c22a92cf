"""The HTTP door: routes, and the rule that every error below them is a problem document.

Mounts in any Flask app under any prefix. What the routes do stands in `views`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from flask import Blueprint, Response, current_app, g, request
from flask.blueprints import BlueprintSetupState
from werkzeug.exceptions import HTTPException, default_exceptions
from werkzeug.routing import Map, RequestRedirect
from werkzeug.urls import iri_to_uri

from aj import dashboard, views, views_control, views_docs, views_metrics
from aj.access import caller_of
from aj.answers import EXTENSION, Answer, Api, Asked, Reply
from aj.cancel import Cancel
from aj.egress import Egress
from aj.errors import Problem, SettingsError
from aj.job import to_json
from aj.openapi import Guard, make_catalogue, make_document
from aj.problems import failure, http_exception_response
from aj.registry import Registry
from aj.settings import Settings
from aj.store import Board, Changes, Control, Figures, Jobs, Keys, Sessions, connect, unready_because
from aj.submit import Submit
from aj.version import USER_AGENT
from aj.waiting import Waiting

log = logging.getLogger("aj.blueprint")

ROUTES = (
    ("POST", "/jobs", "submit", views.submit_job),
    ("GET", "/jobs", "list", views_control.list_jobs),
    ("GET", "/jobs/<string:job_id>", "status", views.job_status),
    ("DELETE", "/jobs/<string:job_id>", "delete", views_control.delete_job),
    ("GET", "/jobs/<string:job_id>/result", "result", views.job_result),
    ("POST", "/jobs/<string:job_id>/cancel", "cancel", views_control.cancel_job),
    ("GET", "/jobs/<string:job_id>/deliveries", "deliveries", views_control.job_deliveries),
    ("POST", "/jobs/<string:job_id>/deliveries", "redeliver", views_control.redeliver),
    ("GET", "/healthz", "health", views_control.health),
    ("GET", "/readyz", "ready", views_control.ready),
    ("GET", "/metrics", "metrics", views_metrics.metrics),
    ("GET", "/tasks", "tasks", views_docs.tasks),
    ("GET", "/openapi.json", "openapi", views_docs.openapi),
    ("GET", "/docs", "docs", views_docs.docs),
    ("GET", "/docs/<string:asset>", "docs_asset", views_docs.docs_asset),
)
OPEN_TO_ALL = frozenset({"health", "ready", "metrics", "tasks", "openapi", "docs", "docs_asset"})
# Merging slashes would be a redirect, and to whatever the Host header says. With the app's own idea of a slash at the
# end, one job would have two addresses.
SLASHES: Mapping[str, Any] = {"merge_slashes": False, "strict_slashes": True}
ANY_ID, MOST_ROOTS = "00000000-0000-7000-8000-000000000000", 100


class JobsBlueprint(Blueprint):
    """The routes of the contract, for your own app: `app.register_blueprint(JobsBlueprint(), url_prefix="/api")`.

    Settings come from the argument, else from the app's config: `AJ_REDIS_URL` and the others.
    Every error below the prefix is a problem document, but for the dashboard's pages; where there is no prefix, every
    error below `/jobs`.
    Registering it raises SettingsError where a setting is wrong.
    """

    def __init__(self, settings: Settings | None = None, name: str = "aj", *, owns_app: bool = False) -> None:
        super().__init__(name, __name__)
        self._settings, self._owns_app = settings, owns_app
        for method, path, endpoint, view in ROUTES:
            self.add_url_rule(path, endpoint, partial(_answer, view), methods=[method], **SLASHES)
        self.register_error_handler(Problem, _failed)
        for code in default_exceptions:  # one by one, since the app's handler of a code wins over ours of a class
            self.register_error_handler(code, _failed)
        self.register_error_handler(HTTPException, _failed)
        self.register_error_handler(Exception, _failed)
        self.before_request(_recognise_caller)
        self.after_request(_complete_options)
        self.after_request(dashboard.leave)
        self.record(self._set_up)

    def _set_up(self, state: BlueprintSetupState) -> None:
        prefix = _prefix_of(state)
        name = f"{state.name_prefix}.{state.name}".lstrip(".")
        apis = state.app.extensions.setdefault(EXTENSION, {})
        jobs_url = lru_cache(MOST_ROOTS)(partial(_jobs_url, state.app.url_map, f"{name}.status"))
        api = apis[name] = make_api(self._settings or _settings_of(state.app.config), jobs_url)
        for method, path, ending, view in dashboard.ROUTES if api.settings.dashboard != "off" else ():
            # These are for people, and no part of the API that OpenAPI tells of.
            place, endpoint = f"/{dashboard.ROOT}{path}", f"{dashboard.ROOT}{ending}"
            lenient = {**SLASHES, "strict_slashes": False}  # people type addresses
            state.add_url_rule(place, endpoint, partial(_page, view), methods=[method], **lenient)
        if self._owns_app:
            state.app.url_map.merge_slashes = False
        ours = prefix if prefix or self._owns_app else "/jobs"
        pages = f"{prefix}/{dashboard.ROOT}" if ours == prefix and api.settings.dashboard != "off" else None
        # Routing fails before a blueprint is chosen, so its error handlers never see these.
        state.app.before_request(partial(_routing_error, ours, pages))


def _prefix_of(state: BlueprintSetupState) -> str:
    """Where the routes are, without a slash at the end.

    Raises: SettingsError: they would be given values that none of them takes.
    """
    prefix = (state.url_prefix or "").rstrip("/")
    if "<" in prefix:
        raise SettingsError(f"the blueprint cannot be registered below {prefix!r}, which has a variable part")
    if state.url_defaults:
        raise SettingsError(f"the blueprint cannot be registered with url_defaults, here {state.url_defaults!r}")
    return prefix


def _settings_of(config: Mapping[str, Any]) -> Settings:
    """The settings in an app's config. A slip in a variable is only told of here, since `AJ_` may be the app's too.

    Raises: SettingsError: a value is not accepted, or the slip would leave the API open.
    """
    settings = Settings.from_config(config, os.environ)
    for sentence in Settings.unknown(os.environ):
        if sentence.endswith("did you mean AJ_API_KEYS?") and not settings.api_keys:
            raise SettingsError(sentence)
        log.warning("%s", sentence)
    return settings


def make_api(settings: Settings, jobs_url: Callable[[str], str]) -> Api:
    """Builds what the routes need; opens no connection yet.

    Raises: SettingsError: no store is named, a task stands for a queue that nobody serves, or an operator has no key.
    """
    for name in set(settings.dashboard_operators) - {each.name for each in settings.api_keys}:
        raise SettingsError(f"AJ_DASHBOARD_OPERATORS has {name!r}, which is no name in AJ_API_KEYS")
    registry = Registry.load(settings.tasks)
    for task in registry:
        if task.queue is not None and task.queue not in settings.queues:
            raise SettingsError(f"task {task.name!r} names the queue {task.queue!r}, which AJ_QUEUES lacks")
    client, keys = connect(settings.redis_url), Keys(settings.prefix)
    jobs, control = Jobs(client, keys), Control(client, keys)
    egress = Egress(settings.callback_allow, settings.callback_timeout_s, USER_AGENT)
    # Half of the threads may wait, so that the other half always answers.
    waiting = Waiting(jobs.find, Changes(client, keys.changes), max(1, settings.web_threads // 2))
    return Api(
        settings=settings,
        submit=Submit(settings, registry, jobs, egress.check_url),
        find=jobs.find,
        waiting=waiting,
        cancel=Cancel(settings, control, jobs.find, waiting),
        control=control,
        unready_because=partial(unready_because, client, keys, settings.queues),
        figures=Figures(client, keys),
        board=Board(client, keys, control),
        sessions=Sessions(client, keys),
        task_names=tuple(each.name for each in registry),
        tasks=to_json(make_catalogue(registry, settings)),
        openapi=to_json(make_document(ROUTES, registry, Guard(bool(settings.api_keys), OPEN_TO_ALL))),
        jobs_url=jobs_url,
    )


def _jobs_url(routes: Map, endpoint: str, root: str) -> str:
    """The path before the id of a job, where a server mounts the app at `root`."""
    url = routes.bind("any", root).build(endpoint, {"job_id": ANY_ID}, force_external=True)
    return iri_to_uri("/" + url.split("/", 3)[3]).removesuffix(ANY_ID)


def _current_api() -> Api:
    api = current_app.extensions[EXTENSION][request.blueprint]
    assert isinstance(api, Api)
    return api


def _recognise_caller() -> Response | None:
    """Keeps what is asked, and by whom; who looks at a page may have to sign in first.

    Raises: Unauthorized: keys are configured, and this is none of them.
    """
    api = _current_api()
    if dashboard.is_page():
        return dashboard.enter(api)
    is_open = (request.endpoint or "").rpartition(".")[2] in OPEN_TO_ALL
    caller = "" if is_open else caller_of(request.headers.get("Authorization"), api.settings.api_keys)
    g.asked = Asked(api, request._get_current_object(), caller)  # type: ignore[attr-defined]
    return None


def _answer(view: Callable[..., Reply], **names: Any) -> Response:
    return Answer(view(g.asked, **names))


def _page(view: Callable[..., Response], **names: Any) -> Response:
    return view(g.asked, **names)


def _complete_options(answer: Response) -> Response:
    """An answer to OPTIONS says what is allowed, also where it is 401, and has a type only where it has a body."""
    if request.method == "OPTIONS":
        if not answer.get_data():
            answer.headers.pop("Content-Type", None)
        if "Allow" not in answer.headers:
            answer.headers["Allow"] = current_app.make_default_options_response().headers["Allow"]
    return answer


def _failed(error: Exception) -> Response:
    """The answer to an error. A submission that brings no job is counted; others are in the step that creates them."""
    why, answer = failure(error, request, (request.view_args or {}).get("job_id", ""))
    if request.endpoint == f"{request.blueprint}.submit":
        _current_api().figures.count_refused(why)
    return dashboard.error_answer(error, answer) if dashboard.is_page() else answer


def _routing_error(ours: str, pages: str | None) -> Response | None:
    """Answers 404 and 405 below `ours` as problems, and below `pages` as pages; leaves the rest of the app as it is."""
    error = request.routing_exception
    if not isinstance(error, HTTPException) or isinstance(error, RequestRedirect):
        return None
    if request.path != ours and not request.path.startswith(ours + "/"):
        return None
    answer = http_exception_response(error)
    if pages is not None and (request.path == pages or request.path.startswith(pages + "/")):
        return dashboard.error_answer(error, answer, iri_to_uri(request.script_root + pages))
    return answer
