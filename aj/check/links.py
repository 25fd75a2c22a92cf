"""The links of an answer's `Link` field, read from the left to the right in a time that grows with its length only."""

from __future__ import annotations

import re

MOST_CHARACTERS = 16_384
# Each of these begins where the last one ended, and can match there in one way only.
_TARGET = re.compile(r"[\s,]*<([^<>]*)>")
_PARAMETER = re.compile(r'\s*;\s*(?:([^\s;,="]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?)?', re.DOTALL)


def link_to(relation: str, field: str) -> str | None:
    """The target of the first link with this relation; None where there is none, or not within the bound.

    Source: RFC 8288, section 3: of several `rel` the first counts, and it may hold several relations.
    """
    text, at = field[:MOST_CHARACTERS], 0
    while target := _TARGET.match(text, at):
        at, relations = target.end(), None
        while parameter := _PARAMETER.match(text, at):
            at = parameter.end()
            name, quoted, bare = parameter.groups()
            if (name or "").lower() == "rel" and relations is None:
                said = bare if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
                relations = (said or "").lower().split()
        if relations and relation in relations:
            return target[1]
    return None
