"""The routes that tell what the API is: its tasks, its OpenAPI document, and a page that shows that to a person."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from werkzeug.exceptions import NotFound

from aj.answers import Asked, Reply, conditional, job_url
from aj.job import digest, quoted

# What the page needs of the package that holds Swagger UI, and nothing else of it.
ASSETS = {
    "swagger-ui.css": "text/css; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
}
PACKAGE = "flask_swagger_ui"
_SCRIPT = (
    'SwaggerUIBundle({url: "openapi.json", dom_id: "#page", validatorUrl: null, deepLinking: true, '
    "presets: [SwaggerUIBundle.presets.apis]})"
)
_PAGE = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>aj</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<div id="page"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script>{_SCRIPT}</script>
</html>
"""
_HASH = b64encode(sha256(_SCRIPT.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; script-src 'self' 'sha256-{_HASH}'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def tasks(asked: Asked) -> Reply:
    return _kept(asked, asked.api.tasks, "application/json")


def openapi(asked: Asked) -> Reply:
    """The document, with the prefix that this request came through as its server."""
    base = job_url(asked, "").removesuffix("/jobs/") or "/"
    return _kept(asked, b'{"servers": [{"url": ' + quoted(base) + b"}], " + asked.api.openapi[1:], "application/json")


def docs(asked: Asked) -> Reply:
    _asset("swagger-ui-bundle.js")
    guards = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer"}
    return _kept(asked, _PAGE.encode(), "text/html; charset=utf-8", guards)


def docs_asset(asked: Asked, asset: str) -> Reply:
    if asset not in ASSETS:
        raise NotFound("The page has no such part.")
    return _kept(asked, _asset(asset), ASSETS[asset])


def _asset(name: str) -> bytes:
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise NotFound("This page needs an extra: pip install 'flask-aj[docs]'. What it shows is in openapi.json.")
    return (Path(spec.origin).parent / "dist" / name).read_bytes()


def _kept(asked: Asked, body: bytes, media_type: str, more: Mapping[str, str] = MappingProxyType({})) -> Reply:
    fields = {"Content-Type": media_type, "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
    return conditional(asked, Reply(200, {**fields, "ETag": f'"{digest(body)}"', **more}, body))
