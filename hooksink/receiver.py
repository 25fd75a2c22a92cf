"""The receiver's HTTP side: takes webhooks at any path, verifies them, and answers once the receipt is on disk.

`create_app` is given its settings and the log's path; nothing here reads the environment.
The log decides what is a duplicate, `body` what is a job document, `aj.signature` what can be trusted.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from flask import Flask, Response, request
from werkzeug.routing import BaseConverter

from aj import clock
from aj.errors import Problem, SettingsError, SignatureInvalid, SignatureMissing
from aj.settings import Settings
from aj.signature import ID_HEADER, verify
from hooksink import refusals
from hooksink.body import parse_job, read_body
from hooksink.log import ReceiptLog
from hooksink.receipts import VALUE_MAX_CHARS, Signature

LISTED = 100


class _AnyPath(BaseConverter):
    """Every path, also an empty one, one with empty segments and one with a newline."""

    regex = r"[\s\S]*"
    part_isolating = False


def create_app(settings: Settings, log_path: str) -> Flask:
    """The receiver, writing to the log at `log_path`.

    Raises: SettingsError: the log is not a file that can be read and written.
    """
    try:
        log = ReceiptLog(log_path)
    except OSError as error:
        reason = error.strerror or error
        raise SettingsError(f"HOOKSINK_LOG is {log_path!r}; accepted: a file that can be written ({reason})") from None
    app = Flask("hooksink", static_folder=None)
    app.url_map.merge_slashes = False
    app.url_map.converters["any_path"] = _AnyPath
    refusals.register(app)

    @app.get("/")
    def describe() -> Response:
        return _fresh({"name": "hooksink", "takes": "POST of a job document, at any path", "receipts": "/receipts"})

    @app.get("/receipts")
    def list_receipts() -> Response:
        try:
            return _fresh({"receipts": [asdict(receipt) for receipt in log.last(LISTED)]})
        except OSError as error:
            raise _unavailable(error) from error

    @app.post("/<any_path:path>")
    def receive(path: str) -> Response:
        try:
            return _receive(settings, log)
        except Problem as problem:
            app.logger.warning("refused a webhook with %d: %s", problem.status, problem.detail)
            raise

    return app


def _receive(settings: Settings, log: ReceiptLog) -> Response:
    body = read_body(request)
    signature = _check_signature(settings.webhook_secrets, body)
    job_id, status = parse_job(body)
    webhook_id = request.headers.get(ID_HEADER, "")
    if len(webhook_id) > VALUE_MAX_CHARS:
        raise refusals.UnreadableSignature(f"{ID_HEADER} has more than {VALUE_MAX_CHARS} characters")
    try:
        receipt = log.append(job_id, status, webhook_id, signature)
    except OSError as error:
        raise _unavailable(error) from error
    return _fresh({"received": True, "duplicate": receipt.duplicate})


def _check_signature(secrets: tuple[bytes, ...], body: bytes) -> Signature:
    if not secrets:
        return "none"
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        verify(secrets, headers, body, clock.now_ms() / 1000)
    except SignatureMissing as error:
        raise refusals.UnreadableSignature(str(error)) from None
    except SignatureInvalid as error:
        raise refusals.WrongSignature(str(error)) from None
    return "valid"


def _unavailable(error: OSError) -> Problem:
    return refusals.LogUnavailable(f"the log of receipts cannot be used: {error.strerror or error}")


def _fresh(content: dict[str, object]) -> Response:
    response = Response(json.dumps(content) + "\n", mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response
