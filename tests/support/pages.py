"""The dashboard as a browser without scripts has it: pages, forms, and where they lead."""

from __future__ import annotations

import re
from html import unescape

from flask.testing import FlaskClient
from werkzeug.test import TestResponse


def shown(client: FlaskClient, path: str = "", status: int = 200) -> str:
    """The text of a page, its tags left out."""
    answer = client.get(f"/dashboard{path}")
    assert answer.status_code == status, answer.text
    main = answer.text.partition("<main")[2]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", "<main" + main)))


def forms(html: str) -> dict[str, dict[str, str]]:
    """The hidden fields of each form that is posted, by its address."""
    found = re.findall(r'<form[^>]* method="post" action="([^"]*)"[^>]*>(.*?)</form>', html, re.DOTALL)
    hidden = r'<input type="hidden" name="([^"]*)" value="([^"]*)">'
    return {
        unescape(action): {name: unescape(value) for name, value in re.findall(hidden, inside)}
        for action, inside in found
    }


def press(client: FlaskClient, page: str, ending: str, **more: str) -> TestResponse:
    """Sends the form of a page whose address ends so."""
    html = client.get(page).text
    [(action, fields)] = [(action, fields) for action, fields in forms(html).items() if action.endswith(ending)]
    return client.post(action, data={**fields, **more})


def sign_in(client: FlaskClient, key: str, **more: str) -> TestResponse:
    """Shows an API key to the dashboard."""
    return press(client, "/dashboard/sign-in", "/sign-in", key=key, **more)
