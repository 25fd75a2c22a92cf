"""The example as its reader starts it: a real store, the commands of its README, real pictures."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests
from flask.testing import FlaskClient
from PIL import Image

from aj.local.embedded import start_server
from tests.support.processes import free_port, running
from tests.support.waiting import wait_until
from thumbnails import create_app
from thumbnails.album import Album

HERE = Path(__file__).resolve().parent
README = (HERE / "README.md").read_text("utf-8")
STARTS = re.findall(r"^\$ (gunicorn .*|.* python -m aj\.worker)$", README, re.MULTILINE)
EXCHANGES = re.findall(r"```console\n\$ (curl [^\n]*)\n(.*?)```", README, re.DOTALL)
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
LEFT_OUT = ("Server:", "Date:", "Connection:", "Content-Length:")
PROBLEM = "application/problem+json"


NOBODYS = "00000000-0000-4000-8000-000000000000"


def picture(kind: str, size: tuple[int, int] = (800, 600), mode: str = "RGB", **options: Any) -> bytes:
    """A picture as a file."""
    file = io.BytesIO()
    Image.effect_mandelbrot(size, (-2, -1.5, 1, 1.5), 50).convert(mode).save(file, kind, **options)
    return file.getvalue()


def blank(size: tuple[int, int]) -> bytes:
    """A picture of many pixels in a small file."""
    file = io.BytesIO()
    Image.new("1", size).save(file, "PNG")
    return file.getvalue()


@dataclass(frozen=True, slots=True)
class Site:
    """The application, running; `folder` holds its pictures in `pictures`."""

    url: str
    folder: Path

    def upload(self, file: bytes) -> str:
        answer = requests.post(f"{self.url}/pictures", files={"picture": file}, timeout=10)
        assert answer.status_code == 201
        return str(answer.json()["picture"])

    def submit(self, **members: Any) -> requests.Response:
        headers = {"Idempotency-Key": str(uuid4())}
        return requests.post(f"{self.url}/api/jobs", json=members, headers=headers, timeout=10)

    def follow(self, answer: requests.Response) -> dict[str, Any]:
        """The document of the job at its end, asked for where and when the answers say."""
        assert answer.status_code == 202
        address = self.url + answer.headers["Location"]
        while "Retry-After" in answer.headers:
            threading.Event().wait(int(answer.headers["Retry-After"]))
            answer = requests.get(address, timeout=10)
            assert answer.status_code == 200
        return dict(answer.json())

    def follow_all(self, answers: Iterable[requests.Response]) -> list[dict[str, Any]]:
        """As if each job had a client of its own."""
        with ThreadPoolExecutor() as clients:
            return list(clients.map(self.follow, answers))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """What the README starts, on a free port and with a store of its own."""
    folder, url = tmp_path_factory.mktemp("site"), f"127.0.0.1:{free_port()}"
    with start_server(folder / "store") as store, ExitStack() as stack:
        env = {
            "AJ_REDIS_URL": store.url,
            "THUMBNAILS_PICTURES": str(folder / "pictures"),
            "GUNICORN_CMD_ARGS": f"--bind {url} --no-control-socket",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        for words in map(shlex.split, STARTS):
            own = dict(word.split("=", 1) for word in words if "=" in word)
            command = [word for word in words if "=" not in word]
            stack.enter_context(running(command, {**env, **own}, folder, HERE))
        site = Site(f"http://{url}", folder)
        wait_until(lambda: is_ready(site), 30, "an application and its worker")
        yield site


def is_ready(site: Site) -> bool:
    try:
        return requests.get(f"{site.url}/api/readyz", timeout=5).status_code == 200
    except requests.ConnectionError:
        return False


# -- as its reader meets it ----------------------------------------------------------------------------------


def test_the_procfile_starts_what_the_readme_starts() -> None:
    """The application and its worker, and nothing else."""
    lines = (HERE / "Procfile").read_text("utf-8").splitlines()
    assert [line.partition(": ")[2] for line in lines] == STARTS
    assert [line.partition(": ")[0] for line in lines] == ["web", "worker"]


def test_the_readme_shows_what_really_happens(site: Site) -> None:
    """Each command is run and answers as written, but for names and times."""
    assert len(EXCHANGES) == 4
    (site.folder / "photo.jpg").write_bytes(picture("JPEG"))
    real: dict[str, str] = {}
    for command, expected in EXCHANGES:

        def answers(command: str = command, expected: str = expected) -> bool:
            said = run(ID.sub(lambda found: real.get(found[0], found[0]), command), site)
            if general(said) != general(expected):
                return False
            real.update(zip(ID.findall(expected), ID.findall(said), strict=True))
            return True

        wait_until(answers, what=f"the README's answer to {command}")
    with Image.open(site.folder / "small.webp") as small:
        assert small.size == (64, 48)


def run(command: str, site: Site) -> str:
    shell = ["sh", "-c", command.replace("http://127.0.0.1:8000", site.url)]
    said = subprocess.run(shell, cwd=site.folder, capture_output=True, text=True, check=True, timeout=10).stdout
    lines = said.replace("\r\n", "\n").splitlines()
    return "\n".join(line for line in lines if not line.startswith(LEFT_OUT))


def general(text: str) -> str:
    """`text` without what differs from run to run."""
    return TIME.sub("…", ID.sub("ID", text)).strip()


# -- pictures and jobs ---------------------------------------------------------------------------------------


def test_a_picture_becomes_thumbnails(site: Site) -> None:
    """Of any kind, and of the sizes that were asked for, each once; a small picture is not made larger."""
    kinds = [("PNG", "RGBA"), ("PNG", "P"), ("JPEG", "CMYK"), ("WEBP", "RGB")]
    names = [site.upload(picture(kind, (800, 300), mode)) for kind, mode in kinds]
    answers = [site.submit(picture=name, sizes=[200, 64, 2000, 64]) for name in names]
    sides = {2000: (800, 300), 200: (200, 75), 64: (64, 24)}
    for name, job in zip(names, site.follow_all(answers), strict=True):
        assert job["result"] == [{"size": size, "width": w, "height": h} for size, (w, h) in sides.items()]
        assert job["progress"]["fraction"] == 1
        for size, expected in sides.items():
            answer = requests.get(f"{site.url}/pictures/{name}/{size}.webp", timeout=10)
            assert answer.headers["Content-Type"] == "image/webp"
            with Image.open(io.BytesIO(answer.content)) as thumbnail:
                assert (thumbnail.format, thumbnail.size) == ("WEBP", expected)


def test_a_broken_picture_fails_with_a_text_for_its_uploader(site: Site) -> None:
    """Its head is well, so that only the task finds it out; nothing is left of the attempt. Nor is one found that
    was never uploaded."""
    halves = [whole[: len(whole) // 2] for whole in (picture("PNG"), picture("JPEG"))]
    names = [*map(site.upload, halves), NOBODYS]
    jobs = site.follow_all([site.submit(picture=name, sizes=[64]) for name in names])
    assert [job["status"] for job in jobs] == ["failed"] * 3
    damaged, unknown = "TaskError: The picture is damaged.", "TaskError: There is no such picture."
    assert [job["error"]["detail"] for job in jobs] == [damaged, damaged, unknown]
    kept = [[each.name for each in (site.folder / "pictures").glob(f"*{name}*")] for name in names]
    assert kept == [[names[0]], [names[1]], []]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "", "photo.jpg", 5, None])
def test_a_picture_cannot_be_a_path(site: Site, name: object) -> None:
    """What is no name of a picture is refused before it is a job."""
    answer = site.submit(picture=name, sizes=[64])
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "#/picture")


@pytest.mark.parametrize("sizes", [[], [15], [2049], ["64"], [64.0], [64] * 9, 64, None])
def test_sizes_have_bounds(site: Site, sizes: object) -> None:
    """As many and as large as a visitor may ask for."""
    answer = site.submit(picture=NOBODYS, sizes=sizes)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"].startswith("#/sizes")


def test_an_error_page_of_the_application_stays_its_own(site: Site) -> None:
    """Beside the API, which answers in its own form."""
    own = requests.get(f"{site.url}/nobody", timeout=10)
    assert (own.status_code, own.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert "Nothing is here" in own.text
    ours = requests.get(f"{site.url}/api/nobody", timeout=10)
    assert (ours.status_code, ours.headers["Content-Type"]) == (404, PROBLEM)


# -- the application alone -----------------------------------------------------------------------------------


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    """A client of the application in this process; nothing here needs a store."""
    monkeypatch.setenv("AJ_REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("THUMBNAILS_PICTURES", str(tmp_path / "pictures"))
    return create_app().test_client()


@pytest.mark.parametrize(
    ("file", "status", "said"),
    [
        (b"no picture", 415, "no picture of a known format"),
        (b"", 415, "no picture of a known format"),
        (picture("GIF", (9, 9)), 415, "no picture of a known format"),
        (picture("PNG", (9, 9))[:20], 415, "no picture of a known format"),
        (blank((10_000, 6_000)), 415, "60,000,000 pixels"),
        (b"x" * 11 * 2**20, 413, "larger than 10 MiB"),
    ],
    ids=["text", "empty", "gif", "no-head", "too-many-pixels", "too-large"],
)
def test_what_is_no_picture_is_not_kept(
    client: FlaskClient, tmp_path: Path, file: bytes, status: int, said: str
) -> None:
    """The page shows the reason."""
    answer = client.post("/pictures", data={"picture": (io.BytesIO(file), "photo.jpg")})
    assert answer.status_code == status
    assert said in (answer.json or {})["message"]
    assert not (tmp_path / "pictures").exists()


@pytest.mark.parametrize("path", [f"{NOBODYS}/64.webp", NOBODYS, "..%2F..%2Fetc%2Fpasswd/64.webp", "x/64.webp"])
def test_only_thumbnails_are_served(client: FlaskClient, path: str) -> None:
    """Neither uploads, which anybody may have made, nor other files."""
    answer = client.get(f"/pictures/{path}")
    assert (answer.status_code, answer.mimetype) == (404, "text/html")


def test_the_page_knows_its_addresses_behind_a_proxy(client: FlaskClient) -> None:
    """The form is given those of the upload and of the jobs."""
    page = client.get("/", environ_overrides={"SCRIPT_NAME": "/shop"}).text
    assert '<form action="/shop/pictures" data-jobs="/shop/api/jobs">' in page


def test_a_picture_is_turned_upright(tmp_path: Path) -> None:
    """A camera that was held sideways says so in the file."""
    turned = Image.Exif()
    turned[0x0112] = 6  # orientation: to be turned right by 90 degrees
    album = Album(tmp_path)
    name = album.add(io.BytesIO(picture("JPEG", (800, 400), exif=turned)))
    assert [(each.width, each.height) for each in album.shrink(name, [64])] == [(32, 64)]
