"""What the bench makes of its samples: tables, ratios, pictures. Nothing is measured here."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.__main__ import PICTURES, QUICK, asked_by
from bench.plot import growth_picture, latency_picture
from bench.processes import BenchError
from bench.questions import QUESTIONS
from bench.report import number, replaced, table
from bench.samples import Figures, Samples, by_turns
from bench.wire import reply_in, request
from tests.architecture.tree import ROOT

DOCUMENT = (ROOT / "docs/performance.md").read_text("utf-8")


def _samples() -> Samples:
    """Two rounds of two stacks; the machine was half as quick in the second."""
    return Samples(
        {
            "aj": [{"per_s": 2000.0, "cpu_us": None, "reads": 1.0}, {"per_s": 1000.0, "cpu_us": None, "reads": 1.1}],
            "Flask + RQ": [{"per_s": 1000.0, "reads": 2.0}, {"per_s": 500.0, "reads": 2.0}],
        }
    )


def test_a_ratio_compares_neighbours_in_time() -> None:
    """Both rounds say twice as quick, although the figures differ by half."""
    spread = _samples().ratio("aj", "per_s", "Flask + RQ")
    assert spread is not None
    assert (spread.median, spread.least, spread.most) == (2, 2, 2)


def test_a_table_has_medians_with_their_spread_and_leaves_out_what_was_not_measured() -> None:
    """Steady figures stand alone; a column without any figure, as CPU where there is no /proc, is not there."""
    lines = table(QUESTIONS["submit"], _samples()).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["stack", "a second", "of RQ's", "store reads"]
    assert cells[2] == ["aj", "1,500 [1,000..2,000]", "2.00x", "1.05"]
    assert cells[3] == ["Flask + RQ", "750 [500..1,000]", "1x", "2.00"]
    assert len({len(line) for line in lines}) == 1


def test_a_row_of_growth_is_compared_with_the_first_of_its_kind() -> None:
    """Each kind of work has a reference of its own."""
    samples = Samples({"POST, 100": [{"per_s": 900.0}], "GET, 100": [{"per_s": 8.0}], "GET, 1,000": [{"per_s": 4.0}]})
    assert [line.split("|")[3].strip() for line in table(QUESTIONS["growth"], samples).splitlines()[2:]] == [
        "1x",
        "1x",
        "0.50x",
    ]


@pytest.mark.parametrize(("value", "shown"), [(12345.6, "12,346"), (99.94, "99.9"), (1.234, "1.23"), (0, "0.00")])
def test_a_number_has_three_digits_and_all_before_the_point(value: float, shown: str) -> None:
    """More would look as if it were known."""
    assert number(value) == shown


def test_each_round_begins_with_another_row() -> None:
    """No row is always the first, which meets a colder machine."""
    order: list[str] = []

    def measure(name: str) -> Figures:
        order.append(name)
        return {}

    by_turns(range(3), {name: partial(measure, name) for name in ("a", "b")})
    assert "".join(order) == "abbaab"


def test_only_the_generated_part_of_a_document_is_rewritten() -> None:
    """What people write around it stays."""
    before = "text\n<!-- bench: submit -->\nold\n<!-- end -->\nmore\n<!-- bench: status -->\nkept\n<!-- end -->\n"
    assert replaced(before, "submit", "new\\1") == before.replace("old", "new\\1")
    with pytest.raises(BenchError, match="growth"):
        replaced(before, "growth", "new")


def test_the_document_has_a_place_for_every_question_and_picture() -> None:
    """In the order of the questions, behind the machine."""
    parts = re.findall(r"<!-- bench: (\w+) -->\n", DOCUMENT)
    assert parts == ["machine", *QUESTIONS]
    assert DOCUMENT.count("<!-- end -->") == len(parts)
    assert set(re.findall(r"\(performance_(\w+)\.svg\)", DOCUMENT)) == set(PICTURES)


def test_the_pictures_are_whole_and_serve_light_and_dark() -> None:
    """Well-formed, with a line for each row and a ground of their own in both."""
    latency = latency_picture(Samples({"a & b": [{}], "c": [{}]}, {"a & b": [1.5, 2.0, 40.0], "c": [3.0, 3.0]}))
    growth = growth_picture(Samples({f"{kind}, {size}": [{"per_s": 90.0}] for kind in "ab" for size in (100, 1000)}))
    for picture in (latency, growth):
        classes = [each.get("class") for each in ElementTree.fromstring(picture).iter()]
        assert {"s0", "s1", "ground"} <= set(classes)
        assert "prefers-color-scheme: dark" in picture


def test_a_reply_is_read_when_it_is_whole() -> None:
    """Piece by piece, whatever the case of its header names; the end of the connection is told."""
    whole = b"HTTP/1.1 202 ACCEPTED\r\nConnection: close\r\ncontent-LENGTH: 4\r\n\r\n{  }"
    assert all(reply_in(whole[:at]) is None for at in range(len(whole)))
    reply = reply_in(whole)
    assert reply is not None
    assert (reply.status, reply.body, reply.closes, reply.is_success) == (202, b"{  }", True, True)


def test_a_request_says_how_long_its_body_is() -> None:
    """Else the server would wait for more."""
    assert request("POST", "/jobs", "{}", "A: b").endswith(
        b"A: b\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_the_peers_have_the_same_libraries_as_we_have() -> None:
    """What both locks name and both use has one version."""
    ours, theirs = (
        dict(re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / path).read_text("utf-8"), re.MULTILINE))
        for path in ("requirements.txt", "bench/requirements.txt")
    )
    for name in ("flask", "gunicorn", "hiredis", "redis", "werkzeug"):
        assert ours[name] == theirs[name], f"renew bench/requirements.txt: {name}"


@pytest.mark.parametrize("whole", ["", "--full", "--rounds 2 --seconds 1.2", "--stacks aj,rq,celery"])
def test_a_whole_run_writes_the_page(whole: str) -> None:
    """As it is run when nothing else is said, also where that is said."""
    assert asked_by(whole.split()).docs == ROOT / "docs"


PARTIAL = ["--only submit", "--stacks aj,rq", "--rounds 1", "--seconds 9", "--sizes 100", "--full --rounds 2"]


@pytest.mark.parametrize("partial", PARTIAL)
def test_any_other_run_leaves_the_page_alone_unless_it_is_asked_to_write(partial: str) -> None:
    """A part of the page would be of another run than the rest, or all of it of a shorter one."""
    assert asked_by(partial.split()).docs is None
    assert asked_by([*partial.split(), "--docs", "elsewhere"]).docs == Path("elsewhere")


def test_nothing_is_written_where_only_printing_was_asked_for() -> None:
    """Whatever else is said."""
    assert asked_by(["--print-only", "--docs", "docs"]).docs is None


def test_the_command_that_stands_on_the_page_says_what_was_left_out() -> None:
    """Else a part of the page would pass for the whole."""
    assert asked_by([]).command == "./run bench"
    assert asked_by(["--full", "--stacks", "rq,aj", "--only", "growth"]).command == (
        "./run bench --full --only growth --stacks aj,rq"
    )


def test_a_question_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """With those that there are."""
    with pytest.raises(SystemExit):
        asked_by(["--only", "submit,speed"])
    assert "accepted: some of submit,status" in capsys.readouterr().err
    assert asked_by(["--only", "status,submit", "--rounds", "1"]).questions == ["submit", "status"]
    assert asked_by([]).plan == QUICK
