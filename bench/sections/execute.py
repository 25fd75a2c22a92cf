"""Running jobs that wait already, by one worker process of each kind."""

from __future__ import annotations

from functools import partial

from bench.samples import Figures, Samples, by_turns
from bench.scene import Scene, Site
from bench.stacks import Worker


def execute(scene: Scene) -> Samples:
    """Jobs that return at once: what is measured is all that is done around them."""
    pairs = [(site, worker) for site in scene.sites.values() for worker in site.stack.workers]
    measures = {worker.name: partial(_measure, scene, site, worker) for site, worker in pairs}
    return by_turns(scene.rounds(), measures)


def _measure(scene: Scene, site: Site, worker: Worker) -> Figures:
    scene.clear()
    return scene.executing(site, worker)
