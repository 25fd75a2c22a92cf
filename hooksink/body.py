"""From a request's bytes to the two values of a job document that a receipt needs. It decides nothing else.

The bytes are read here and not by Flask, which cuts an oversized chunked body silently and accepts one that is
shorter than its Content-Length.
"""

from __future__ import annotations

import json
from typing import NoReturn

from flask import Request

from aj.errors import BodyTooLarge, Malformed, UnsupportedMedia
from hooksink.receipts import VALUE_MAX_CHARS
from hooksink.refusals import NotAJob

BODY_MAX_BYTES = 2**20
READ_BYTES = 65_536
STATUSES = ("queued", "running", "succeeded", "failed")


def read_body(request: Request) -> bytes:
    """The raw body, at most 1 MiB of it ever being held.

    Raises:
        BodyTooLarge: more than 1 MiB, with or without a Content-Length.
        Malformed: it ended before its Content-Length, or its transfer coding is broken.
        UnsupportedMedia: it is compressed.
    """
    coding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise UnsupportedMedia(f"Content-Encoding is {coding!r}; send the body as it is")
    declared = request.content_length
    if declared is not None and declared > BODY_MAX_BYTES:
        raise BodyTooLarge(f"the body has {declared} bytes; at most {BODY_MAX_BYTES} are accepted")
    # Without a length, only a server that marks the end of the stream may be read to the end.
    wanted = BODY_MAX_BYTES + 1 if request.environ.get("wsgi.input_terminated") else 0
    body = _read_up_to(request, wanted if declared is None else declared)
    if len(body) > BODY_MAX_BYTES:
        raise BodyTooLarge(f"the body has more than {BODY_MAX_BYTES} bytes, which is all that is accepted")
    if declared is not None and len(body) < declared:
        raise Malformed(f"the body ended after {len(body)} of {declared} bytes")
    return body


def _read_up_to(request: Request, size_bytes: int) -> bytes:
    stream = request.environ["wsgi.input"]
    body = bytearray()
    try:
        while len(body) < size_bytes and (piece := stream.read(min(READ_BYTES, size_bytes - len(body)))):
            body += piece
    except Exception as error:
        # A server reports a cut connection or a broken chunk by exceptions of its own, of no common base.
        raise Malformed(f"the body could not be read: {type(error).__name__}") from None
    return bytes(body)


def parse_job(body: bytes) -> tuple[str, str]:
    """The `job_id` and `status` of a job document.

    Raises: NotAJob: it is not JSON, not an object, or one of the two is not of its form.
    """
    try:
        document = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise NotAJob("the body is not JSON in UTF-8, or too deeply nested") from None
    if not isinstance(document, dict):
        raise NotAJob("the body is not a JSON object")
    job_id, status = document.get("job_id"), document.get("status")
    if not isinstance(job_id, str) or not 1 <= len(job_id) <= VALUE_MAX_CHARS or not _is_unicode(job_id):
        raise NotAJob(f"job_id must be a text of 1 to {VALUE_MAX_CHARS} characters without lone surrogates")
    if status not in STATUSES:
        raise NotAJob(f"status must be one of {', '.join(STATUSES)}")
    return job_id, str(status)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
