"""Where the settings of a process are given: in its environment, or in the config of its Flask app.

Finds, for each setting, the name by which it was given and its text, and what looks like a setting and is none.
What a text means, and whether it is accepted, is the business of `settings`.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

CALLERS_OWN = ("AJ_URL", "AJ_API_KEY", "AJ_CHECK_SECRET")  # the command line reads them

_DIGEST = re.compile(r".*:.*|[0-9a-fA-F]{64}", re.DOTALL)
Given = dict[str, tuple[str, str]]  # by the field of `Settings`: the name it was given by, and its text


def variable(name: str) -> str:
    """The environment variable of a field of `Settings`."""
    return f"AJ_{name.upper()}"


def in_environment(environ: Mapping[str, str], names: Collection[str]) -> Given:
    """What the environment gives for `names`."""
    found = {name: (variable(name), environ[variable(name)]) for name in names if variable(name) in environ}
    if "redis_url" not in found and environ.get("REDIS_URL"):
        found["redis_url"] = "REDIS_URL", environ["REDIS_URL"]
    return found


def in_config(
    config: Mapping[str, Any],
    environ: Mapping[str, str],
    names: Collection[str],
    full_name_only: Collection[str],
    heard: Collection[str],
) -> Given:
    """What a Flask app's config gives for `names`, by `AJ_NAME` or else by `NAME`.

    `from_prefixed_env("AJ")` takes the prefix away and reads JSON, so what it brought is told by `environ`, and taken
    from there: so that the same text means the same, and has the same name, as in a worker. The bare name of
    `full_name_only` may be the app's own, and does not count. The variables of `heard` count where the config has
    nothing, whether the app has read them or not.
    """
    found: Given = {}
    for name in names:
        called, bare = variable(name), name.upper()
        if config.get(called) is not None:
            found[name] = called, _text(config[called])
        elif called in environ and name not in full_name_only and _is_from(config, bare, environ[called]):
            found[name] = called, environ[called]
        elif name not in full_name_only and config.get(bare) is not None:
            found[name] = bare, _text(config[bare])
        elif called in environ and name in heard:
            found[name] = called, environ[called]
    return found


def unknown(environ: Mapping[str, str], names: Collection[str]) -> Iterator[str]:
    """A sentence for each `AJ_…` variable that is no setting. Its value, which may be a secret, is not shown."""
    known = [variable(name) for name in names]
    for called, text in environ.items():
        # A digest in AJ_API_KEY is a slip for AJ_API_KEYS, and would leave the API open.
        is_callers_own = called in CALLERS_OWN and not (called == "AJ_API_KEY" and _DIGEST.fullmatch(text))
        if called.startswith("AJ_") and called not in known and not is_callers_own:
            close = difflib.get_close_matches(called.upper(), known, 1)
            hint = f"did you mean {close[0]}?" if close else "docs/settings.md lists them"
            yield f"{called} is not a setting of this version; {hint}"


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _is_from(config: Mapping[str, Any], key: str, text: str) -> bool:
    """Whether `config` has at `key` what Flask's `from_prefixed_env` makes of `text`."""
    if key not in config:
        return False
    try:
        made = json.loads(text)
    except ValueError:
        made = text
    return repr(made) == repr(config[key])  # NaN, which JSON of Python has, is not equal to itself
