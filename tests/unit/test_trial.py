"""What a worker says of itself when it starts, so that forgotten settings show."""

from __future__ import annotations

from pathlib import Path

from aj.settings import Settings
from aj.worker.trial import introduction, try_to_load


def test_it_names_the_store_without_a_password_and_the_tasks() -> None:
    """Of many tasks some."""
    asked = Settings(redis_url="redis://user:hunter2@store:6379/1?ssl_cert_reqs=hunter2", tasks=("shop.tasks", "more"))
    assert introduction(asked, ["sell"]) == "tasks of shop.tasks, more: sell; store: redis://store:6379/1"
    assert "t19 and 5 more; store" in introduction(asked, [f"t{number}" for number in range(25)])


def test_a_store_of_its_own_is_told_with_its_reason() -> None:
    """An app that was given an address would wait for this worker for ever."""
    said = introduction(Settings(data_dir="data"), ["square"])
    assert f"store: its own in {Path('data').absolute()}, since AJ_REDIS_URL is not set" in said


def test_the_names_come_from_a_process_of_its_own() -> None:
    """The tasks are tried out there, and their end is its own."""
    assert try_to_load(Settings()) == (0, ["square", "countdown"])
    code, names = try_to_load(Settings(tasks=("no_such_module",)))
    assert (code, names) == (2, [])
