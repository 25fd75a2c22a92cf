"""Answers held against the OpenAPI document: status, headers, media type and body are what it promises, and no more."""

from __future__ import annotations

import json
import re
from typing import Any

from openapi_schema_validator import OAS31Validator, oas31_format_checker
from werkzeug.test import TestResponse

# Of HTTP itself or of the framework; what the document says of our own headers is complete.
COMMON = {"Content-Type", "Content-Length", "X-Content-Type-Options", "Referrer-Policy", "Accept-Encoding"}


class Promised:
    """What one document promises."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._closed: dict[str, Any] = {"components": closed(document["components"])}
        base = document["servers"][0]["url"].rstrip("/")
        self._paths = {
            path: re.compile(re.escape(base) + re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))
            for path in document["paths"]
        }

    def check(self, answer: TestResponse) -> None:
        """Fails where the answer is not as promised for the request that brought it."""
        method = "GET" if answer.request.method == "HEAD" else answer.request.method
        path = next(path for path, pattern in self._paths.items() if pattern.fullmatch(answer.request.path))
        where = f"{method} {answer.request.path}: {answer.status}"
        responses = self.document["paths"][path][method.lower()]["responses"]
        assert str(answer.status_code) in responses, where
        told = responses[str(answer.status_code)]
        self._check_headers(answer, told.get("headers", {}), where)
        if answer.request.method == "HEAD" or "content" not in told:
            assert answer.data == b"", where
            return
        assert answer.mimetype in told["content"], where
        if (answer.mimetype or "").endswith("json"):
            self.check_body(json.loads(answer.data), told["content"][answer.mimetype]["schema"])

    def check_body(self, body: Any, schema: dict[str, Any]) -> None:
        """Fails where `body` does not fit, or has a member that the schema does not name."""
        made = OAS31Validator({**self._closed, **closed(schema)}, format_checker=oas31_format_checker)
        made.validate(body)

    def _check_headers(self, answer: TestResponse, told: dict[str, Any], where: str) -> None:
        missing = [name for name, header in told.items() if header["required"] and name not in answer.headers]
        assert missing == [], where
        assert [name for name in answer.headers.keys() if name not in told and name not in COMMON] == [], where  # noqa: SIM118
        for name, header in told.items():
            if name in answer.headers:
                value = answer.headers[name]
                self.check_body(int(value) if header["schema"].get("type") == "integer" else value, header["schema"])


def closed(schema: Any) -> Any:
    """The schema with no room for members that it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(value) for name, value in schema.items()}
    if made.get("type") == "object" and "properties" in made:
        made.setdefault("additionalProperties", False)
    return made
