"""The header fields that tell of a rate, read by a parser that is not ours."""

from __future__ import annotations

import http_sf

from aj.rate import Quota, Rate


def test_the_fields_are_lists_of_named_quotas() -> None:
    """Source: draft-ietf-httpapi-ratelimit-headers-10 sections 3 and 4."""
    fields = Quota(Rate(100, 60), left=7, reset_s=12).fields()
    read = {name: http_sf.parse(value.encode(), tltype="list") for name, value in fields.items()}
    assert read == {
        "RateLimit-Policy": [("submissions", {"q": 100, "w": 60})],
        "RateLimit": [("submissions", {"r": 7, "t": 12})],
    }
