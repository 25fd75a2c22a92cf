"""How gunicorn serves `wsgi:app` and `hooksink:app`. The values and their reasons stand in `aj/local/gunicorn_conf.py`.

Command line options win over them, as `-b` does for the receiver; so do names that are assigned below.
"""

from aj.local.gunicorn_conf import (
    bind,
    control_socket_disable,
    forwarder_headers,
    graceful_timeout,
    keepalive,
    logger_class,
    on_starting,
    post_worker_init,
    preload_app,
    threads,
    worker_class,
    worker_connections,
    workers,
)
from aj.processes import die_at_interrupt

__all__ = [
    "bind",
    "control_socket_disable",
    "forwarder_headers",
    "graceful_timeout",
    "keepalive",
    "logger_class",
    "on_starting",
    "post_worker_init",
    "preload_app",
    "threads",
    "worker_class",
    "worker_connections",
    "workers",
]

die_at_interrupt()  # until gunicorn sets its own handlers: loading the app and starting the store take a moment
