"""Running jobs that wait already, by more and more worker processes of `aj`, with and without the store's file."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

from bench.samples import Figures, Samples, by_turns
from bench.scene import Scene, Site
from bench.stacks import AJ

PROCESSES = (1, 2, 4)
FILES = {"appendfsync everysec": True, "no file": False}


def scale(scene: Scene) -> Samples:
    """What a second and a fourth worker process add on this machine."""
    if AJ not in scene.sites:
        return Samples()
    measures = {
        f"{file}, {processes}": partial(_measure, scene, scene.sites[AJ], processes, has_file)
        for file, has_file in FILES.items()
        for processes in PROCESSES
    }
    return by_turns(scene.rounds(), measures)


def _measure(scene: Scene, site: Site, processes: int, has_file: bool) -> Figures:
    scene.clear()
    with nullcontext() if has_file else scene.store.without_file():
        figures = scene.executing(site, site.stack.workers[0], processes)
        scene.clear()
    return figures
