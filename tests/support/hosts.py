"""Hosts of their own, each with a name, an address and a link that can be cut: network namespaces on one bridge.

It takes root, `ip` (of iproute2), `unshare` and `nsenter` (of util-linux), and a kernel that allows it.
A host lives as long as a process that this one feeds through a pipe, and its link ends with it: nothing is left
behind, however this process ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

# Of the network that is set aside for tests (RFC 2544), a part for each process that tests.
NETWORK = f"198.18.{os.getpid() % 256}"
HUB = f"{NETWORK}.1"
TOOLS = ("ip", "unshare", "nsenter", "hostname", "cat")


def run(*command: str) -> None:
    """Raises: RuntimeError: the command failed; its text is what the command said."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")


@dataclass(frozen=True, slots=True)
class Host:
    """A host; `inside` before a command runs it there. `hub` is the host at which its link ends."""

    name: str
    address: str
    pid: int
    hub: tuple[str, ...]

    @property
    def inside(self) -> tuple[str, ...]:
        return _inside(self.pid)

    def cut(self) -> None:
        """Nothing goes out or comes in, and nobody is told."""
        run(*self.hub, "ip", "link", "set", "dev", self.name, "down")

    def heal(self) -> None:
        run(*self.hub, "ip", "link", "set", "dev", self.name, "up")


def _inside(pid: int) -> tuple[str, ...]:
    return ("nsenter", "--target", str(pid), "--net", "--uts", "--")


def _namespace(stack: ExitStack, name: str) -> int:
    """The pid of a process in new namespaces, which ends when its input does."""
    script = f"hostname {name} && ip link set dev lo up && echo up && exec cat"
    process = subprocess.Popen(
        ["unshare", "--net", "--uts", "--", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None

    def end() -> None:
        process.stdin.close()  # type: ignore[union-attr]
        process.wait(10)
        process.stdout.close()  # type: ignore[union-attr]
        process.stderr.close()  # type: ignore[union-attr]

    stack.callback(end)
    if process.stdout.readline() != b"up\n":
        raise RuntimeError(f"unshare: {process.stderr.read().decode().strip()}")
    return process.pid


def why_not() -> str | None:
    """Why there can be no hosts here, or None where there can."""
    if os.name != "posix" or not os.path.isdir("/proc/self/ns"):
        return "there are no network namespaces here; they are Linux's"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} is not here (apt-get install iproute2 util-linux)"
    try:
        with hosts("probe"):
            return None
    except RuntimeError as error:
        return f"this machine does not allow network namespaces: {error}"


@contextmanager
def hosts(*names: str) -> Iterator[list[Host]]:
    """Hosts on one network, with each other and with this process in reach.

    Raises: RuntimeError: a namespace or a link could not be made.
    """
    with ExitStack() as stack:
        hub_pid = _namespace(stack, "hub")
        hub = _inside(hub_pid)
        run(*hub, "ip", "link", "add", "name", "bridge", "type", "bridge")
        run(*hub, "ip", "link", "set", "dev", "bridge", "up")
        # Our own end. It goes with the hub, to which the other end belongs, but not at once.
        ours = f"aj{os.getpid()}"
        _link(hub, "outside", ours, None)
        stack.callback(run, "ip", "link", "delete", "dev", ours)
        run("ip", "address", "add", f"{HUB}/24", "dev", ours)
        run("ip", "link", "set", "dev", ours, "up")
        made = []
        for number, name in enumerate(names, 2):
            host = Host(name, f"{NETWORK}.{number}", _namespace(stack, name), hub)
            _link(hub, name, "eth0", host.pid)
            run(*host.inside, "ip", "address", "add", f"{host.address}/24", "dev", "eth0")
            run(*host.inside, "ip", "link", "set", "dev", "eth0", "up")
            made.append(host)
        yield made


def _link(hub: tuple[str, ...], at_hub: str, other: str, pid: int | None) -> None:
    """Two ends of a cable: `at_hub` on the bridge, `other` in the namespace of `pid`, or in ours."""
    where = str(os.getpid() if pid is None else pid)
    run(*hub, "ip", "link", "add", "name", at_hub, "type", "veth", "peer", "name", "far")
    run(*hub, "ip", "link", "set", "dev", "far", "netns", where, "name", other)
    run(*hub, "ip", "link", "set", "dev", at_hub, "master", "bridge", "up")
