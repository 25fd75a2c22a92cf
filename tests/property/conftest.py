"""How Hypothesis works here: the same examples on every run, no stop-watch, nothing kept between runs."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A test that fails must fail again on the next machine; `./run chaos` and the like are for what is random.
settings.register_profile(
    "aj",
    derandomize=True,
    deadline=None,
    max_examples=100,
    database=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("aj")
