"""What a stranger may send: text and bytes that are broken, twisted, or nearly right."""

from __future__ import annotations

from hypothesis import strategies as st

# What parsers in general stumble over: other digits, other spaces, halves of pairs, marks of direction, control codes.
ODD = (
    *(
        "",
        " ",
        "\t",
        "\n",
        "\r\n",
        "\x00",
        "\x1b",
        "\x7f",
        "\x85",
        "\xa0",
        "\xad",
        "\u2028",
        "\u202e",
        "\ufeff",
        "\ufffd",
    ),
    *("٣", "²", "①", "\uff10", "\uff0e", "\u3002", "℀", "\u017f", "\u212a", "ß", "İ", "é", "😀", "\ud800", "\udfff"),
    *('"', "'", "\\", "/", "//", "@", "#", "?", "%", "%00", "%zz", "&", "=", ",", ";", ":", "::", "[", "]", "{", "}"),
    *(
        "-",
        "--",
        "+",
        ".",
        "..",
        "~",
        "~0",
        "~1",
        "*",
        "$",
        "`",
        "|",
        "<",
        ">",
        "(",
        ")",
        "0",
        "00",
        "1e9",
        "-1",
        "NaN",
    ),
    *("true", "null", "9" * 30, "a" * 300, "\\u0000", "\\ud800", "W/"),
)


def hostile_text(*pieces: str) -> st.SearchStrategy[str]:
    """Text of any kind, and text put together from `pieces` of what is expected and of what is odd."""
    parts = st.sampled_from(pieces + pieces + ODD) if pieces else st.sampled_from(ODD)
    built = st.lists(parts | st.text(max_size=3), max_size=10).map("".join)
    return st.one_of(built, st.text(max_size=40))


def header_text(*pieces: str) -> st.SearchStrategy[str]:
    """A header's value as a server hands it over: bytes read as Latin-1, without control characters."""
    wire = hostile_text(*pieces).map(lambda text: text.encode("utf-8", "surrogatepass").decode("latin-1"))
    return wire.map(lambda text: "".join(each for each in text if each >= " " and each != "\x7f"))


def hostile_bytes(*pieces: bytes) -> st.SearchStrategy[bytes]:
    """Bytes of any kind, and bytes put together from `pieces`, odd text and noise."""
    odd = tuple(text.encode("utf-8", "surrogatepass") for text in ODD)
    parts = st.sampled_from(pieces + pieces + odd) if pieces else st.sampled_from(odd)
    return st.one_of(st.lists(parts | st.binary(max_size=3), max_size=12).map(b"".join), st.binary(max_size=60))


# Whatever JSON can hold, and nothing that it cannot. Integers stay within what every reader keeps exactly.
json_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
json_names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_values: st.SearchStrategy[object] = st.recursive(
    json_scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(json_names, inner, max_size=4),
    max_leaves=12,
)
