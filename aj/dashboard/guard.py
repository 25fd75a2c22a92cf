"""Who looks at a page, what they may see and do, and that it is they who ask for it.

A browser has a token in a cookie. What a page may be asked to do carries a digest of it, which nobody else can make, so
that a page of another site cannot ask. With API keys the store knows which caller the token stands for.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, replace
from urllib.parse import urlencode, urlsplit

from flask import Response, g, request
from werkzeug.exceptions import Forbidden
from werkzeug.urls import iri_to_uri

from aj.access import known_key
from aj.answers import Api, Asked
from aj.dashboard.render import FIELD, ROOT, base, come_again, see_other
from aj.settings import ApiKey, Settings

COOKIE = "aj_dashboard"
MOST_FORM_BYTES = 4096
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
# Whoever follows a link from there comes without a cookie, since ours is strict. To give it another one would be to
# sign it out, so it is asked to come again from here.
ELSEWHERE = ("cross-site", "same-site")
SIGN_IN = frozenset({f"{ROOT}_sign_in", f"{ROOT}_sign_in_form"})


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks: a caller, without a name where callers are not told apart. `owners` are the callers whose jobs it
    sees.

    `token` is its browser's, and `is_new` says that the browser has to be told of it.
    """

    name: str
    owners: tuple[str, ...]
    may_act: bool
    token: str
    is_new: bool = False
    is_signed_in: bool = False

    @property
    def sees_all(self) -> bool:
        return len(self.owners) > 1 or self.owners == ("",)

    @property
    def proof(self) -> str:
        """What a form carries."""
        return hashlib.sha256(f"form {self.token}".encode()).hexdigest()


def viewer() -> Viewer:
    found = g.aj_viewer
    assert isinstance(found, Viewer)
    return found


def enter(api: Api) -> Response | None:
    """Notes what is asked and who looks, before any page; gives the way to the sign-in where nobody is signed in.

    Raises: Forbidden: an action that is not allowed, or not asked for by a page of ours.
    """
    endpoint = (request.endpoint or "").rpartition(".")[2]
    g.asked = asked = Asked(api, request._get_current_object(), "")  # type: ignore[attr-defined]
    if endpoint == f"{ROOT}_asset":  # also those of the page that says that the store is away
        return None
    shown = request.cookies.get(COOKIE, "")
    if not shown and request.method == "GET" and request.headers.get("Sec-Fetch-Site") in ELSEWHERE:
        return come_again()
    token = shown if _TOKEN.fullmatch(shown) else ""
    settings, name = api.settings, ""
    if settings.api_keys and token:
        name = api.sessions.caller(token, settings.api_keys) or ""
    g.aj_viewer = _viewer(settings, name, token)
    g.asked = replace(asked, caller=name)
    if request.method == "POST":
        _refuse_forged(g.aj_viewer)
    if settings.api_keys and not name and endpoint not in SIGN_IN:
        page = _page_asked() if request.method == "GET" else ""
        return see_other(f"{base()}/sign-in" + ("?" + urlencode({"next": page}) if page else ""))
    return None


def leave(answer: Response) -> Response:
    """Tells a browser its token, once."""
    found = g.get("aj_viewer")
    if isinstance(found, Viewer) and found.is_new and answer.mimetype == "text/html" and answer.status_code < 300:
        tell_token(answer, found.token)
    return answer


def tell_token(answer: Response, token: str) -> None:
    """Gives a browser the token that it shows from now on, to the dashboard only."""
    answer.set_cookie(COOKIE, token, path=base(), httponly=True, samesite="Strict", secure=request.is_secure)


def forget_token(answer: Response) -> None:
    answer.delete_cookie(COOKIE, path=base(), httponly=True, samesite="Strict", secure=request.is_secure)


def new_token() -> str:
    return secrets.token_urlsafe(32)


def key_shown(asked: Asked) -> ApiKey | None:
    """The API key in the form of the sign-in, if it is one."""
    return known_key(request.form.get("key", "").strip(), asked.api.settings.api_keys)


def refuse_reader() -> None:
    """Raises: Forbidden: the dashboard is for reading only."""
    if not viewer().may_act:
        raise Forbidden("This dashboard is for reading only; AJ_DASHBOARD=act lets it act.")


def _viewer(settings: Settings, name: str, token: str) -> Viewer:
    owners: tuple[str, ...] = (name,) if name or not settings.api_keys else ()
    if name and name in settings.dashboard_operators:
        owners = ("", *sorted({each.name for each in settings.api_keys}))
    may_act = settings.dashboard == "act" and bool(name or not settings.api_keys)
    return Viewer(name, owners, may_act, token or new_token(), not token, bool(name))


def _page_asked() -> str:
    """Its path below the dashboard, and its query as it came."""
    page = iri_to_uri(request.script_root + request.path).removeprefix(base())
    query = request.query_string.decode("ascii", "ignore")
    return f"{page}?{query}" if query else page


def _host_of(origin: str) -> str:
    """Empty where an origin is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _refuse_forged(asking: Viewer) -> None:
    """Raises: Forbidden. Source: Fetch Metadata Request Headers section 2.3; RFC 6454 section 7."""
    request.max_content_length = MOST_FORM_BYTES
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None and site != "same-origin":
        raise Forbidden("Another site asked for this; nothing was done.")
    # Without encryption most browsers do not say from which site, and their Origin has to do.
    if site is None and origin is not None and _host_of(origin) != request.host:
        raise Forbidden("A page of another host asked for this; nothing was done.")
    if not hmac.compare_digest(request.form.get(FIELD, "").encode(), asking.proof.encode()):
        raise Forbidden("The page that asked for this is too old, or its cookie is gone; open it again.")
