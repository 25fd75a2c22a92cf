"""How gunicorn serves `wsgi:app` and `hooksink:app`. The values and their reasons stand in `aj/local/gunicorn_conf.py`.

Command line options win over them, as `-b` does for the receiver; so do names that are assigned below.
"""

from aj.local.gunicorn_conf import (
    bind,
    control_socket_disable,
    forwarder_headers,
    graceful_timeout,
    keepalive,
    preload_app,
    threads,
    worker_class,
    workers,
)

__all__ = [
    "bind",
    "control_socket_disable",
    "forwarder_headers",
    "graceful_timeout",
    "keepalive",
    "preload_app",
    "threads",
    "worker_class",
    "workers",
]
