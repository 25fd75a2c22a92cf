"""What a submission of the check says: the profile's header fields in place of its own, and each once."""

from __future__ import annotations

import dataclasses
import socket
import threading

from aj.check.scene import Scene
from tests.check.playing import options
from tests.check.rude import rude


def test_a_media_type_of_the_profile_is_the_only_one() -> None:
    """Two would make any API refuse what the profile says that it takes."""
    came: list[bytes] = []

    def listen(connection: socket.socket, over: threading.Event) -> None:
        came.append(connection.recv(65536))
        connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")

    with rude(listen) as url:
        said = options(url)
        submit = dataclasses.replace(said.profile.submit, headers={"content-type": "application/vnd.api+json"})
        profile = dataclasses.replace(said.profile, submit=submit)
        with Scene(dataclasses.replace(said, profile=profile)) as scene:
            scene.send(b"{}")
            scene.send(b"{}", (("Content-Type", "text/plain"),))
    kinds = [
        [line for line in each.decode().split("\r\n") if line.lower().startswith("content-type:")] for each in came
    ]
    assert kinds == [["content-type: application/vnd.api+json"], ["Content-Type: text/plain"]]
