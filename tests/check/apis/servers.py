"""The servers: pygeoapi, and Celery with a worker and Flower, each on a loopback port of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aj.local.server import start_server
from tests.support.processes import Running, accepts, free_port, running
from tests.support.waiting import wait_until

START_S = 90.0


@contextmanager
def pygeoapi(programs: Path, folder: Path) -> Iterator[str]:
    """The base URL of a pygeoapi with hello-world and our two processes."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    config = folder / "pygeoapi.yml"
    config.write_text(json.dumps(_config(port, url, folder)), "utf-8")  # JSON is YAML
    description = folder / "openapi.yml"
    description.write_text("openapi: 3.0.2", "utf-8")
    env = {"PYGEOAPI_CONFIG": str(config), "PYGEOAPI_OPENAPI": str(description)}
    with running([str(programs / "pygeoapi"), "serve"], env, folder) as server:
        _wait(lambda: accepts(port), server, what="a pygeoapi that listens")
        yield url


def _config(port: int, url: str, folder: Path) -> dict[str, Any]:
    people = "name position address city stateorprovince postalcode country phone fax hours instructions role"
    nobody = dict.fromkeys(people.split(), "-")
    process = "tests.check.apis.ogc_processes"
    return {
        "server": {
            "bind": {"host": "127.0.0.1", "port": port},
            "url": url,
            "mimetype": "application/json; charset=UTF-8",
            "encoding": "utf-8",
            "languages": ["en-US"],
            "limits": {"default_items": 20, "max_items": 50},
            "map": {"url": url, "attribution": "-"},
            "manager": {"name": "TinyDB", "connection": str(folder / "jobs.db"), "output_dir": str(folder)},
        },
        "logging": {"level": "ERROR"},
        "metadata": {
            "identification": {
                **dict.fromkeys(("title", "description", "terms_of_service"), "-"),
                **{"keywords": ["-"], "keywords_type": "theme", "url": url},
            },
            "license": {"name": "-", "url": url},
            "provider": {"name": "-", "url": url},
            "contact": {**nobody, "email": "nobody@example.com", "url": url},
        },
        "resources": {
            "hello-world": {"type": "process", "processor": {"name": "HelloWorld"}},
            "rest": {"type": "process", "processor": {"name": f"{process}.Rest"}},
            "fail": {"type": "process", "processor": {"name": f"{process}.Fail"}},
        },
    }


@contextmanager
def celery_with_flower(programs: Path, folder: Path) -> Iterator[str]:
    """The base URL of a Flower, with a Celery worker of two processes and a store of its own."""
    store = start_server(folder)
    port = free_port()
    env = {"JOBS_URL": store.url.replace("unix://", "redis+socket://"), "FLOWER_UNAUTHENTICATED_API": "true"}
    celery = [str(programs / "celery"), "-A", "tests.check.apis.celery_jobs"]
    try:
        with (
            running([*celery, "worker", "--concurrency", "2", "--loglevel", "INFO"], env, folder) as worker,
            running([*celery, "flower", "--address=127.0.0.1", f"--port={port}"], env, folder) as flower,
        ):
            _wait(lambda: "ready." in worker.output, worker, what="a Celery worker that is ready")
            _wait(lambda: accepts(port), flower, what="a Flower that listens")
            url = f"http://127.0.0.1:{port}"
            yield url
    finally:
        store.stop()


def _wait(look: Any, process: Running, what: str) -> None:
    def look_at_both() -> bool:
        assert process.process.poll() is None, process.output
        return bool(look())

    wait_until(look_at_both, START_S, what)
