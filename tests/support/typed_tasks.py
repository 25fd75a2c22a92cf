"""Quick tasks without side effects, whose parameters are of many types: made for callers that send anything."""

from __future__ import annotations

from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from aj import TaskError, task


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Item(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=40)]
    size: Size = Size.SMALL
    parts: list[Item] = []


@task
def double(n: Annotated[int, Field(ge=-1000, le=1000)]) -> int:
    """Twice n."""
    return 2 * n


@task(retries=1, retry_delays_s=(0,))
def pack(item: Item, count: Annotated[int, Field(gt=0, le=9)] = 1, note: str | None = None) -> dict[str, Any]:
    """Packs an item."""
    return {"name": item.name, "count": count, "note": note}


@task(name="plan.trip", timeout_s=30)
def plan(on: date, by: Literal["rail", "road"], ticket: UUID, ratio: float = 0.5, tags: tuple[str, ...] = ()) -> str:
    return f"{on} by {by}"


@task
def refuse(why: dict[str, int | bool | None]) -> None:
    raise TaskError(f"{len(why)} reasons")
