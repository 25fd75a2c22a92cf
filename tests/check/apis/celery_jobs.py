"""What Celery runs behind Flower: one task that is quick, one that takes its time, one that fails."""

import os
import time

from celery import Celery

app = Celery("jobs", broker=os.environ["JOBS_URL"], backend=os.environ["JOBS_URL"])
app.conf.update(task_track_started=True, broker_connection_retry_on_startup=True)


@app.task(name="square")
def square(n: int) -> int:
    return n * n


@app.task(name="rest")
def rest(seconds: float) -> str:
    time.sleep(seconds)
    return "rested"


@app.task(name="fail")
def fail() -> None:
    raise ValueError("on purpose")
