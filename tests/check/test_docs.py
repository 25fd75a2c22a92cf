"""docs/check.md is what really happens: its reports, its profile, its tables."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from click.testing import CliRunner

from aj.check.command import check
from aj.check.points import ALL
from aj.check.profile import Headers, Job, Paths, Profile, Submit, shipped
from tests.architecture.tree import ROOT
from tests.check.door import API_KEY, serving
from tests.check.reports import reports
from tests.conftest import Deployment
from tests.support.processes import running_api, running_worker

PAGE = (ROOT / "docs/check.md").read_text("utf-8")
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
VARIABLE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z|ID-\d+|(Date|Server): .*|Content-Length: \d+")


def _general(text: str) -> str:
    """`text` without what differs from run to run."""
    return VARIABLE.sub("…", ID.sub("ID", text)).strip()


def test_the_report_is_what_really_happens(deploy: Callable[..., Deployment], folder: Path) -> None:
    """The command is run against our own API, as it is without settings, and says each line."""
    command, expected = re.findall(r"```console\n\$ (aj check [^\n]*)\n(.*?)```", PAGE, re.DOTALL)[0]
    env = deploy(AJ_TASKS="aj.tasks").env
    with running_worker(env, folder), running_api(env, folder) as (_, url):
        arguments = shlex.split(command.replace("http://127.0.0.1:8140", url))[2:]
        result = CliRunner().invoke(check, arguments, catch_exceptions=False)
    assert result.output.splitlines() == expected.splitlines()
    assert result.exit_code == 0


def test_what_is_broken_is_shown_as_it_is_written() -> None:
    """With the exchange, but for ids, times and what the server calls itself."""
    expected = re.findall(r"```\n(BROKEN .*?)```", PAGE, re.DOTALL)[0]
    with serving("Retry-After at the end") as url:
        asked = {"AJ_API_KEY": API_KEY}
        said = CliRunner().invoke(check, [url, "--level", "basic", "--brief"], env=asked, catch_exceptions=False).output
    assert _general(expected) in _general(said)


def test_the_profile_fits_the_api_that_it_is_of(folder: Path) -> None:
    """All that this API offers holds, at the highest level."""
    profile = folder / "reports.toml"
    profile.write_text(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0], "utf-8")
    with reports() as url:
        result = CliRunner().invoke(check, [url, "--profile", str(profile), "--json"], catch_exceptions=False)
    report = json.loads(result.output)
    states = {each["name"]: each["state"] for each in report["points"]}
    assert {name for name, state in states.items() if state == "broken"} == set()
    assert (states["location"], states["result-only-at-the-end"], states["gone"]) == ("held", "held", "not applicable")


def test_the_tables_have_every_point() -> None:
    """In its order, with its sentence, its source and its groups."""
    rows = re.findall(
        r"^\| `([\w-]+)` \| (.*?) \| (.*?) \| (.*?) \|$", PAGE.partition("## Level basic")[2], re.MULTILINE
    )
    groups = {each.name: " ".join(f"`{group}`" for group in each.group.split()) or "none" for each in ALL}
    assert rows == [(each.name, each.sentence, each.source, groups[each.name]) for each in ALL]


def test_the_table_of_profiles_has_every_member() -> None:
    """And that of those that come along every one."""
    for kind in (Submit, Job, Paths, Headers):
        for each in fields(kind):
            assert f"`{each.name}`" in PAGE, each.name
    for name in ("title", "callback", "words", "not_offered"):
        assert name in {each.name for each in fields(Profile)}
        assert f"`{name}`" in PAGE
    for name in shipped():
        assert f"| `{name}` | " in PAGE


def test_every_option_is_told_of() -> None:
    """By its name."""
    named = [each.opts[0] for each in check.params if each.opts[0].startswith("--")]
    assert [name for name in named if not re.search(rf"{name}\b", PAGE)] == []
