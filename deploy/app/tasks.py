"""What the application has done by workers."""

from __future__ import annotations

import time

from aj import report_progress, task


@task(timeout_s=60, retries=2)
def pack(order: int, parcels: int = 1) -> dict[str, int]:
    """Packs an order; safe to run again, since it only tells what it would do."""
    for done in range(parcels):
        time.sleep(0.05)
        report_progress((done + 1) / parcels, f"parcel {done + 1} of {parcels}")
    return {"order": order, "parcels": parcels}
