"""What the document of a refusal has to say: a problem as in RFC 9457, with pointers to members that are wrong."""

from __future__ import annotations

from aj.check.exchange import Exchange
from aj.check.profile import at
from aj.check.verdicts import expect


def expect_pointer(exchange: Exchange, wanted: str) -> None:
    """One entry of `errors` points so. Source: RFC 9457 section 3.1, RFC 6901 section 6. Raises: Broken."""
    errors = at(exchange.document, "errors")
    expect(isinstance(errors, list), "there is no list of errors in it", exchange)
    pointers = [at(each, "pointer") for each in errors]
    bare = wanted.removeprefix("#")
    expect(bare not in pointers, f"the pointer is {bare}, where {wanted} is right (RFC 6901 §6)", exchange)
    expect(wanted in pointers, f"no entry of errors has the pointer {wanted}", exchange)


def expect_problem(exchange: Exchange) -> None:
    """The answer is a problem document that fits its status. Raises: Broken."""
    assert exchange.answer is not None
    kind, problem = exchange.answer.media_type, exchange.document
    expect(kind == "application/problem+json", f"{exchange.status} is {kind or 'untyped'}, not a problem", exchange)
    kinds = {"type": str, "title": str, "status": int, "detail": str}
    for name, wanted in kinds.items():
        expect(type(at(problem, name)) is wanted, f"{name} is not there, or of a wrong kind", exchange)
    said = at(problem, "status")
    expect(said == exchange.status, f"the status in the document is {said}, not {exchange.status}", exchange)
