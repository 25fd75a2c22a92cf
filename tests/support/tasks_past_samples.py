"""A task that takes what no sample made from its schema is."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from aj import task


@task
def convert(
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")],
    cents: Annotated[int, Field(json_schema_extra={"examples": None})],
) -> str:
    return f"{cents} {currency}"
