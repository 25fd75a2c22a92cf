"""Flask and Celery as Flask's documentation joins them: tasks inside the app's context, Redis for both ends.

Source: https://flask.palletsprojects.com/en/stable/patterns/celery/
"""

import os
from typing import Any

from celery import Celery, Task
from celery.result import AsyncResult
from flask import Flask, request

from bench.peers.marks import mark

app = Flask(__name__)


class InContext(Task):
    """A task that runs inside the app's context."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with app.app_context():
            return self.run(*args, **kwargs)


celery = Celery(app.name, task_cls=InContext)
celery.config_from_object({"broker_url": os.environ["BENCH_URL"], "result_backend": os.environ["BENCH_URL"]})
celery.set_default()


@celery.task
def square(n: int) -> int:
    mark()
    return n * n


@app.post("/jobs")
def submit() -> tuple[dict[str, Any], int]:
    result = square.delay(request.get_json()["n"])
    return {"job_id": result.id, "status": "queued"}, 202


@app.get("/jobs/<job_id>")
def show(job_id: str) -> dict[str, Any]:
    result = AsyncResult(job_id)
    ready = result.ready()
    return {"job_id": job_id, "status": result.status, "result": result.result if ready else None}
