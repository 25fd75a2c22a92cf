"""The API as a WSGI application: `gunicorn wsgi:app`. Holds nothing of its own."""

from aj.local.web import make_app

app = make_app()
