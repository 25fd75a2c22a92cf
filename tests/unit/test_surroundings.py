"""What a task runs inside: the app is found, loaded once and asked for a context; what is no app is refused."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from flask import Flask, current_app, g

from aj import TaskError
from aj.errors import SettingsError
from aj.execute import TimedOut
from aj.settings import Settings
from aj.worker.surroundings import Surroundings, inside, load_tasks
from tests.support.execution import raising
from tests.support.task_modules import written_modules

TASKS = "from aj import task\n@task\ndef double(n: int) -> int:\n    return 2 * n\n"
APP = "from flask import Flask\napp = Flask('host')\n"
STORE = {"REDIS_URL": "redis://127.0.0.1:1/0"}
FACTORY = "from flask import Flask\nmade = []\ndef make():\n    made.append(Flask('host'))\n    return made[-1]\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], str]]:
    """Writes modules that can be imported while the test lasts."""
    yield from written_modules(tmp_path, monkeypatch)


def surroundings_of(task_app: str | None) -> Surroundings:
    return load_tasks(Settings(task_app=task_app))[1]


# -- what is around a task -----------------------------------------------------------------------------------


def test_without_the_setting_nothing_is_around_a_task() -> None:
    """It stays a plain function."""
    assert surroundings_of(None) is nullcontext
    assert inside(nullcontext, lambda: bool(current_app))() is False


def test_a_task_sees_its_app(module: Callable[[str, str], str]) -> None:
    """As a view does, for as long as it runs."""
    call = inside(surroundings_of(f"{module('web_named', APP)}:app"), lambda: current_app.name)
    assert call() == "host"
    assert not current_app


def test_a_factory_is_called_once(module: Callable[[str, str], str]) -> None:
    """When the worker starts; each run then has a context of its own, with a `g` of its own."""
    surroundings = surroundings_of(f"{module('web_made', FACTORY)}:make()")

    def note() -> tuple[Flask, bool]:
        was_empty = "noted" not in g
        g.noted = True
        return current_app._get_current_object(), was_empty  # type: ignore[attr-defined]

    (first, was_empty), (second, still_empty) = (inside(surroundings, note)() for _ in range(2))
    assert first is second
    assert (was_empty, still_empty) == (True, True)


@pytest.mark.parametrize("error", [ValueError("x"), TaskError("x"), TimedOut(), SystemExit(3), KeyboardInterrupt()])
def test_the_end_of_a_task_passes_through_its_app(error: BaseException) -> None:
    """What the app does at the end of a context sees it, as to roll back a transaction."""
    app = Flask("host")
    seen: list[BaseException | None] = []
    app.teardown_appcontext(seen.append)
    with pytest.raises(type(error)) as caught:
        inside(app.app_context, raising(error))()
    assert caught.value is error
    assert seen == [error]
    assert inside(app.app_context, lambda: 5)() == 5
    assert seen == [error, None]


def test_an_app_that_fails_at_the_end_fails_the_task() -> None:
    """A transaction that could not be committed is no success."""
    app = Flask("host")

    @app.teardown_appcontext
    def commit(error: BaseException | None) -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        inside(app.app_context, lambda: 5)()


def test_a_context_cannot_make_a_success_of_a_failure() -> None:
    """Flask's own does not swallow errors; another one may."""
    with pytest.raises(RuntimeError, match="swallowed"):
        inside(lambda: suppress(ValueError), raising(ValueError))()


# -- how the app is found ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("called", "text", "said"),
    [
        ("no_such_module:app", "", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("web_wrong:nothing", APP, "AttributeError: module 'web_wrong' has no attribute 'nothing'"),
        ("web_wrong:app", "1 / 0\n", "ZeroDivisionError: division by zero"),
        ("web_wrong:app", "raise ValueError('two\\n  lines')\n", "(ValueError: two lines)"),
        ("web_wrong:app", "def\n", "SyntaxError: "),
        ("web_wrong:app", "raise ValueError('x' * 5000)\n", "x)"),
        ("web_wrong:make()", "def make(config): ...\n", "TypeError: make() missing 1 required"),
        ("web_wrong:make()", "def make():\n    return {}['secret key']\n", "KeyError: 'secret key'"),
        ("web_wrong:make", FACTORY, "of type function and no Flask app; is it web_wrong:make() that makes one?"),
        ("web_wrong:make()", "def make(): ...\n", "of type NoneType and no Flask app"),
        ("web_wrong:app", "app = 5\n", "of type int and no Flask app"),
        ("web_wrong:app", "class app:\n    app_context = None\n", "of type type and no Flask app"),
    ],
)
def test_what_is_no_app_is_refused_in_one_line(
    module: Callable[[str, str], str], called: str, text: str, said: str
) -> None:
    """It names the setting, what was found, and how to see more."""
    module("web_wrong", text)
    with pytest.raises(SettingsError, match=f"^AJ_TASK_APP is '{called}'".replace("()", r"\(\)")) as caught:
        surroundings_of(called)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_the_app_comes_before_its_tasks(module: Callable[[str, str], str]) -> None:
    """As in its web process, where it mounts the API and by that imports its tasks, which import it."""
    mounts = "from aj import JobsBlueprint\napp.register_blueprint(JobsBlueprint())\n"
    web = module("web_of_tasks", f"{APP}app.config['TASKS'] = 'tasks_of_web'\napp.config.update({STORE})\n{mounts}")
    tasks = module("tasks_of_web", f"from web_of_tasks import app\nassert app\n{TASKS}")
    registry, surroundings = load_tasks(Settings(task_app=f"{web}:app", tasks=(tasks,)))
    assert registry.default.name == "double"
    assert inside(surroundings, lambda: current_app.config["TASKS"])() == tasks


# -- what the app does to the process ------------------------------------------------------------------------


def test_handlers_of_the_signals_that_a_worker_lives_by_are_put_back(module: Callable[[str, str], str]) -> None:
    """Those of other signals stay, as one that prints where every thread is."""
    ignoring = "".join(f"signal.signal(signal.SIG{name}, signal.SIG_IGN)\n" for name in ("CHLD", "TERM", "USR2"))
    before = signal.getsignal(signal.SIGUSR2)
    try:
        surroundings_of(f"{module('web_signals', f'import signal{chr(10)}{ignoring}{APP}')}:app")
        assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert signal.getsignal(signal.SIGUSR2) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_our_loggers_are_not_silenced(
    module: Callable[[str, str], str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`logging.config` disables what it does not name, so that the error of a task would stand nowhere."""
    ours, other = [logging.getLogger(name) for name in ("aj.execute", "rq.worker")], logging.getLogger("host.other")
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            monkeypatch.setattr(logger, "disabled", logger.disabled)  # put back at the end
    text = "import logging.config\nlogging.config.dictConfig({'version': 1})\n"
    surroundings_of(f"{module('web_logging', text + APP)}:app")
    assert other.disabled
    for logger in ours:
        logger.error("heard")
    assert [record.name for record in caplog.records] == ["aj.execute", "rq.worker"]
