"""Submitting jobs and reading them, by 16 connections, while no worker runs."""

from __future__ import annotations

from functools import partial

from bench.samples import Samples, by_turns
from bench.scene import Scene
from bench.stacks import SUBMIT
from bench.wire import request


def submit(scene: Scene) -> Samples:
    """`POST /jobs`, over and over."""
    scene.clear()
    measures = {name: partial(scene.loaded, site, SUBMIT) for name, site in scene.sites.items()}
    return by_turns(scene.rounds(), measures)


def status(scene: Scene) -> Samples:
    """`GET` of a job that has ended well."""
    scene.clear()
    measures = {}
    for name, site in scene.sites.items():
        with scene.working(site.stack.workers[0]):
            wanted = request("GET", f"/jobs/{scene.one_job(site)}")
        measures[name] = partial(scene.loaded, site, wanted)
    return by_turns(scene.rounds(), measures)
