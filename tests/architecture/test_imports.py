"""Imports go one way, and each outside library stays in its room."""

from __future__ import annotations

import ast
import sys

import pytest

from tests.architecture.tree import Module, modules

# From the bottom to the top; a module may import its own storey and those below.
STOREYS = (
    (
        "words",
        (
            *("errors", "clock", "version", "signature", "settings", "schedule", "pace", "rate", "job", "headers"),
            *("body", "given", "access", "logs", "interim", "extras"),
        ),
    ),
    ("rooms", ("store", "egress", "registry", "progress", "tasks", "processes", "waiting", "webhook")),
    ("verbs", ("submit", "execute", "deliver", "cancel")),
    (
        "doors",
        (
            *("problems", "openapi", "answers", "views", "views_control", "views_docs", "views_metrics", "blueprint"),
            *("short_cut", "client", "dashboard"),
        ),
    ),
    ("assembly", ("app", "api", "local", "worker", "check", "cli", "__main__")),
)
LEVEL = {name: level for level, (_, names) in enumerate(STOREYS) for name in names}

# Which of our packages may name which library.
CONFINED = {
    "flask": (
        *("aj.blueprint", "aj.answers", "aj.views", "aj.problems", "aj.app", "aj.short_cut", "hooksink", "bench.peers"),
        *("aj.local.web", "aj.local.gunicorn_worker", "aj.dashboard"),
    ),
    "gunicorn": ("aj.local.gunicorn_worker", "aj.local.gunicorn_logs", "hooksink.__main__"),
    "werkzeug": ("aj.blueprint", "aj.answers", "aj.views", "aj.problems", "aj.dashboard", "hooksink"),
    "jinja2": ("aj.dashboard.render",),
    "redis": ("aj.store", "aj.worker.rq_worker", "aj.worker.loop", "bench.store", "bench.peers"),
    "rq": ("aj.store", "aj.worker.rq_worker", "aj.worker.loop", "bench.peers"),
    "celery": ("bench.peers.celery_app",),
    "requests": ("aj.egress", "aj.client"),
    "urllib3": ("aj.egress",),
    "pydantic": ("aj.registry", "aj.tasks"),
    "pydantic_core": ("aj.registry",),
    "prometheus_client": ("aj.views_metrics",),
    "http_sf": ("aj.headers",),
    "click": ("aj.cli.", "aj.check"),
    "time": ("aj.clock",),
    "datetime": ("aj.clock", "aj.egress", "bench.sections.webhooks"),
}
EDGES = (
    "aj.app",
    "aj.api",
    "aj.blueprint",
    "aj.worker.fleet",
    "aj.worker.child",
    "aj.local",
    "aj.cli.bash",  # by variables a shell asks what could be meant
    "aj.cli.terminal",
    "hooksink",
    "wsgi",
    "bench.__main__",
    "bench.peers",
)


def _room(name: str) -> str:
    return name.split(".")[1] if name.startswith("aj.") else ""


def _ours(module: Module) -> list[Module]:
    return [modules()[name] for name in module.imports if name in modules()]


@pytest.mark.parametrize("module", modules().values(), ids=lambda module: module.name)
def test_a_module_imports_only_its_own_storey_and_those_below(module: Module) -> None:
    """process → assembly → doors → verbs → rooms → words, and never back."""
    if not _room(module.name):
        return
    for other in _ours(module):
        if _room(other.name):
            assert LEVEL[_room(other.name)] <= LEVEL[_room(module.name)], f"{module.name} imports {other.name}"


@pytest.mark.parametrize("module", modules().values(), ids=lambda module: module.name)
def test_every_library_stays_in_its_room(module: Module) -> None:
    """Below the door nothing sees Flask, above the store nothing sees Redis."""
    for imported in module.imports:
        library = imported.split(".")[0]
        if library in CONFINED:
            assert module.name.startswith(CONFINED[library]), f"{module.name} imports {library}"


def test_verbs_do_not_import_each_other() -> None:
    """Submit, execute and deliver can each be read and changed alone."""
    verbs = set(STOREYS[2][1])
    crossed = [
        (module.name, other.name)
        for module in modules().values()
        for other in _ours(module)
        if _room(module.name) in verbs and _room(other.name) in verbs and module.name != other.name
    ]
    assert crossed == []


def test_the_checker_needs_nothing_that_a_server_needs() -> None:
    """It can be run where only the client is installed: of `aj` it takes words, of others click alone."""
    for name, module in modules().items():
        if name.startswith("aj.check"):
            ours = {other.name for other in _ours(module) if not other.name.startswith("aj.check")}
            assert ours <= {"aj.errors", "aj.clock", "aj.interim", "aj.signature", "aj.version"}, name
            others = {each.split(".")[0] for each in module.imports} - set(sys.stdlib_module_names)
            assert others <= {"aj", "click"}, name


def test_no_import_cycle() -> None:
    """Typing imports and imports inside functions count; only the names of the package itself are loaded late."""
    waiting = {name: {other.name for other in _ours(each)} for name, each in modules().items() if name != "aj"}
    for imported in waiting.values():
        imported.discard("aj")
    while ready := [name for name, imported in waiting.items() if not imported & waiting.keys()]:
        for name in ready:
            del waiting[name]
    assert sorted(waiting) == []


def test_the_client_knows_only_words_and_requests() -> None:
    """It works against any server that keeps the contract, where nothing of a server is installed."""
    of_client = {name: each for name, each in modules().items() if name.startswith("aj.client")}
    ours = {_room(other.name) for each in of_client.values() for other in _ours(each) if _room(other.name)}
    assert ours <= {"client", "errors", "clock", "interim", "signature", "version"}
    libraries = {each.split(".")[0] for module in of_client.values() for each in module.imports}
    assert libraries - sys.stdlib_module_names == {"aj", "requests"}


def test_the_command_line_knows_no_server() -> None:
    """A caller has the base dependencies only; what starts a server starts another program."""
    of_cli = {name: each for name, each in modules().items() if name.startswith("aj.cli.") or name == "aj.cli"}
    ours = {_room(other.name) for each in of_cli.values() for other in _ours(each) if _room(other.name)}
    assert ours <= {"cli", "client", "errors", "clock", "signature", "settings", "access", "processes", "version"}
    libraries = {each.split(".")[0] for module in of_cli.values() for each in module.imports}
    assert libraries - sys.stdlib_module_names == {"aj", "click"}


def test_nothing_leans_on_the_bench() -> None:
    """`aj` and hooksink do not know it, and it knows nothing of the tests."""
    for name, module in modules().items():
        others = ("tests",) if name.startswith("bench") else ("tests", "bench")
        assert [each for each in module.imports if each.split(".")[0] in others] == [], name


def test_the_receiver_knows_only_the_words_it_needs() -> None:
    """hooksink can be lifted out and run by somebody else."""
    known = {other.name for name, each in modules().items() if name.startswith("hooksink") for other in _ours(each)}
    assert {name for name in known if not name.startswith("hooksink")} <= {
        "aj.signature",
        "aj.clock",
        "aj.errors",
        "aj.extras",
        "aj.settings",
    }


def test_the_environment_is_read_only_at_the_edges() -> None:
    """Settings enter once and are passed down."""
    readers = [
        name
        for name, module in modules().items()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")
        if isinstance(node.value, ast.Name) and node.value.id == "os"
    ]
    assert [name for name in readers if not name.startswith(EDGES)] == []
