"""Pace: what callers that obey `Retry-After` really get, measured on a live deployment.

`python -m tests.pace --minutes 35` starts a store, an API and workers, submits jobs that sleep, and plays the callers.
`tests.support.pace_simulation` says the same of many more jobs, without the machine.
"""
