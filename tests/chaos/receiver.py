"""`python -m tests.chaos.receiver FOLDER SEED`: takes webhooks at three addresses and notes every one.

It is a bad receiver on purpose: now and then it answers 500 or 503, or hangs up after it has read everything, so
that repeats are the rule. What came is noted before anything is answered. SIGTERM ends it.
"""

from __future__ import annotations

import random
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.chaos.notes import RECEIVER, SECRET, Notes

# Deliveries are counted by address, so one receiver that is down does not hold up the others' webhooks.
ADDRESSES = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
HANG_UP = 0
ANSWERS, WEIGHTS = (200, 204, 500, 503, HANG_UP), (60, 20, 8, 6, 6)


def judge(headers: dict[str, str], body: bytes) -> str:
    """`valid`, or why the signature is not; judged by the reference library and not by our own code."""
    try:
        Webhook(SECRET).verify(body, headers)
    except WebhookVerificationError as error:
        return str(error)
    return "valid"


def serve(address: str, notes: Notes, chance: random.Random) -> None:
    """Starts a receiver on a free port of `address` and notes its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            if len(body) < length:  # its sender was killed in the middle of it
                self.close_connection = True
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            notes.write(
                "webhook",
                id=headers.get("webhook-id"),
                body=body.decode("latin-1"),
                signature=judge(headers, body),
            )
            status = chance.choices(ANSWERS, WEIGHTS)[0]
            if status == HANG_UP:
                self.close_connection = True
                return
            self.send_response(status)
            if status == 503:
                self.send_header("Retry-After", "1")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing; the notes do."""

    server = ThreadingHTTPServer((address, 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    notes.write("listening", url=f"http://{address}:{server.server_address[1]}/hook")


def main(folder: str, seed: str) -> None:
    notes = Notes(Path(folder) / RECEIVER)
    for address in ADDRESSES:
        serve(address, notes, random.Random(f"{seed} {address}"))
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
