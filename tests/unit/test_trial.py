"""What a worker says of itself when it starts, so that forgotten settings show."""

from __future__ import annotations

from pathlib import Path

import pytest

from aj.settings import Settings
from aj.worker.trial import introduction, try_to_load

MANY = "from aj import task\n" + "".join(f"@task\ndef {'t' * 90}{n}() -> None: ...\n" for n in range(25))


def test_it_names_the_store_without_a_password_and_the_tasks() -> None:
    """Forgotten settings are seen at a glance."""
    asked = Settings(redis_url="redis://user:hunter2@store:6379/1?ssl_cert_reqs=hunter2", tasks=("shop.tasks", "more"))
    assert introduction(asked, ["sell"]) == "tasks of shop.tasks, more: sell; store: redis://store:6379/1"


def test_a_store_of_its_own_is_told_with_its_reason() -> None:
    """An app that was given an address would wait for this worker for ever."""
    said = introduction(Settings(data_dir="data"), ["square"])
    assert f"store: its own in {Path('data').absolute()}, since AJ_REDIS_URL is not set" in said


def test_the_names_come_from_a_process_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks are tried out there, and their end is its own. Of many tasks some are told."""
    assert try_to_load(Settings()) == (0, ["square", "countdown"])
    folder.joinpath("many_tasks.py").write_text(MANY, "utf-8")
    monkeypatch.syspath_prepend(folder)
    code, names = try_to_load(Settings(tasks=("many_tasks",)))
    assert (code, len(names), names[-1]) == (0, 21, "5 more")
    code, names = try_to_load(Settings(tasks=("no_such_module",)))
    assert (code, names) == (2, [])
