"""Shell completion: the script for a shell, and what the API knows that could be meant.

The API has a second for its answer; where there is none, nothing is offered, and nobody is told.
"""

from __future__ import annotations

import contextlib
import itertools
import re

import click
from click.shell_completion import CompletionItem, get_completion_class

from aj.cli.api import DEFAULT_URL
from aj.cli.exits import Exit
from aj.cli.terminal import say
from aj.cli.text import plain
from aj.client import Client

ANSWER_S = 1.0
OFFERED = 50
VARIABLE = "_AJ_COMPLETE"


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print what makes a shell complete commands, options, tasks and jobs.

    \b
      bash, in ~/.bashrc:                  eval "$(aj completion bash)"
      zsh, in ~/.zshrc:                    eval "$(aj completion zsh)"
      fish, in ~/.config/fish/config.fish: aj completion fish | source
    """
    found = get_completion_class(shell)
    assert found is not None
    say(found(click.Group("aj"), {}, "aj", VARIABLE).source().rstrip())
    return Exit.DONE


def job_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of the newest jobs, each with its status and task."""
    with contextlib.suppress(Exception):
        documents = [job.document for job in itertools.islice(_client(ctx).jobs(), OFFERED)]
        return [
            CompletionItem(document["job_id"], help=plain(f"{document['status']}, {document.get('task', '')}"))
            for document in documents
            if _fits(document["job_id"], incomplete)
        ]
    return []


def task_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The tasks that the API knows."""
    with contextlib.suppress(Exception):
        return [
            CompletionItem(task["name"], help=plain(str(task.get("description", "")).partition("\n")[0]))
            for task in _client(ctx).tasks()
            if _fits(task["name"], incomplete)
        ]
    return []


def _client(ctx: click.Context) -> Client:
    """The client that the options so far, or the variables, ask for. Standard input is the shell's, and not read."""
    key, file = ctx.params.get("api_key"), ctx.params.get("api_key_file")
    if file is not None and file.name != "<stdin>":
        key = file.read(1000).decode("ascii").strip()
    return Client(ctx.params.get("url") or DEFAULT_URL, api_key=key, timeout_s=ANSWER_S)


def _fits(name: str, incomplete: str) -> bool:
    """Whether it can be offered: a shell would act on anything else than plain visible characters."""
    return name.startswith(incomplete) and re.fullmatch(r"[A-Za-z0-9._:-]+", name) is not None
