"""What the API says of itself: the OpenAPI document and the list of tasks, made from what the code does.

Values and pure functions only: nothing here reads a request or a store.
"""

from aj.openapi.document import Guard, Route, make_document
from aj.openapi.tasks import make_catalogue

__all__ = ["Guard", "Route", "make_catalogue", "make_document"]
