"""The client works where nothing is installed but requests: no framework, no store, nothing of a server."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.processes import ROOT, clean_env
from tests.support.scripted_server import answer, scripted

ID = "01a22875-8ab0-7b86-a00f-efef3fad16ff"
# requests with what it brings; no other package from outside the standard library may be asked for.
ALLOWED = ["aj", "requests", "urllib3", "idna", "certifi", "charset_normalizer"]

STORY = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ALLOWED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
for name in ("flask", "redis", "rq", "pydantic", "http_sf", "gunicorn", "click"):
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise SystemExit(f"{name} was there")

from aj.client import Client, SignatureError, verify

assert Client(URL).submit(n=5).result() == 25
try:
    verify({}, b"", ["whsec_" + "A" * 44])
except SignatureError:
    print("done")
"""


def test_a_whole_story_needs_requests_only() -> None:
    """In an interpreter that can import nothing else."""
    queued = answer(202, {"job_id": ID, "status": "queued"}, Location=f"/jobs/{ID}")
    with scripted(queued, answer(200, {"job_id": ID, "status": "succeeded", "result": 25})) as server:
        told = f"ALLOWED, URL = {json.dumps(ALLOWED)}, {server.url!r}\n"
        command = [sys.executable, "-c", told + STORY]
        done = subprocess.run(command, env=clean_env({}), cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
