"""Flask and RQ as tutorials join them: enqueue in one view, fetch the job in the other."""

import os
from typing import Any

from flask import Flask, abort, request
from redis import Redis
from rq import Queue
from rq.exceptions import NoSuchJobError
from rq.job import Job

from bench.peers.rq_tasks import square

app = Flask(__name__)
connection = Redis.from_url(os.environ["RQ_REDIS_URL"])
queue = Queue(connection=connection)


@app.post("/jobs")
def submit() -> tuple[dict[str, Any], int]:
    job = queue.enqueue(square, request.get_json()["n"])
    return {"job_id": job.id, "status": "queued"}, 202


@app.get("/jobs/<job_id>")
def show(job_id: str) -> dict[str, Any]:
    try:
        job = Job.fetch(job_id, connection=connection)
    except NoSuchJobError:
        abort(404)
    return {"job_id": job.id, "status": job.get_status(), "result": job.return_value()}
