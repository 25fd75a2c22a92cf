"""How gunicorn serves the application; it reads this file by itself, from the folder in which it starts."""

import os

from aj.local.gunicorn_conf import post_worker_init

__all__ = ["post_worker_init"]

bind = os.environ.get("BIND", "127.0.0.1:8000")
workers = int(os.environ.get("AJ_WEB_WORKERS", "2"))
threads = int(os.environ.get("AJ_WEB_THREADS", "64"))  # as many as shop.py says
worker_class = "aj.local.gunicorn_worker.DirectWorker"
control_socket_disable = True
graceful_timeout = 10
keepalive = 75  # longer than the proxy keeps a connection, so that the proxy closes first
