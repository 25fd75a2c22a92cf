"""All commands of `aj` by name, loaded when they are called; and the end of every call: its exit code."""

from __future__ import annotations

import errno
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from aj.cli import bash, terminal
from aj.cli.exits import Exit
from aj.version import __version__

# Name: where the command is (`module:object`), and what `aj --help` says of it without loading it.
COMMANDS = {
    "submit": ("aj.cli.submit:submit", "Submit a job, and print its URL; with --wait, its result as JSON."),
    "status": ("aj.cli.jobs:status", "Show how a job stands."),
    "wait": ("aj.cli.jobs:wait", "Wait for the end of a job, and print its result as JSON."),
    "cancel": ("aj.cli.jobs:cancel", "Cancel a job: one that waits never runs, one that runs is stopped."),
    "list": ("aj.cli.jobs:list_jobs", "List jobs, newest first, without their results."),
    "deliveries": ("aj.cli.jobs:deliveries", "Show each attempt to bring a job's webhook."),
    "redeliver": ("aj.cli.jobs:redeliver", "Send a job's webhook again, with the same webhook-id and bytes."),
    "up": ("aj.cli.processes:up", "Start the API, a worker, the receiver and a store of their own, and stay."),
    "demo": ("aj.cli.processes:demo", "Play one job from its submission to its webhook, and stop."),
    "worker": ("aj.cli.processes:worker", "Run jobs and deliver webhooks."),
    "key": ("aj.cli.secrets:key", "Make API keys."),
    "secret": ("aj.cli.secrets:secret", "Make secrets that sign webhooks."),
    "check": (
        "aj.check.command:check",
        "Play the contract against the asynchronous HTTP API at URL, and say what holds.",
    ),
    "completion": (
        "aj.cli.complete:completion",
        "Print what makes a shell complete commands, options, tasks and jobs.",
    ),
}
# What a disk says to what click writes by itself.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called or completed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names from the table: click's own way would load every command."""
        named = [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items() if name.startswith(incomplete)]
        return named + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="aj %(version)s")
def aj() -> None:
    """Submit jobs to an asynchronous HTTP API and follow them; start and check such an API.

    A JOB is named by its id or its URL. The API is at AJ_URL, or --url; AJ_API_KEY is the key to show there.

    Exit codes: 0 done, 1 the job failed, 2 usage, 3 refused by the API, 4 no such job (any more), 5 not ended in
    time, 6 no usable answer (trying again later may help), 130 interrupted.
    """


def run(arguments: Sequence[str] | None) -> int:
    """Runs one command; gives its exit code. Whatever happens, an error is told in words."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # from here on somebody tells of it
    terminal.take_any_text()
    bash.teach()
    try:
        return _called(arguments)
    except click.UsageError as error:
        message, where = error.format_message(), error.ctx.command_path if error.ctx else "aj"
        is_help = "\n" in message  # a group that was called without a command
        terminal.talk(message if is_help else f"aj: {message} ({where} --help says more)")
        return Exit.USAGE
    except click.ClickException as error:
        terminal.talk(f"aj: {error.format_message()}")
        return Exit.USAGE
    except terminal.Unwritten as error:
        if error.reader_has_gone:
            return Exit.READER_GONE
        terminal.talk(f"aj: the output cannot be written: {error}")
        return Exit.UNWRITTEN
    except (KeyboardInterrupt, click.Abort):
        return Exit.INTERRUPTED
    except Exception:
        traceback.print_exc(file=sys.stderr)
        return Exit.CRASHED


def _called(arguments: Sequence[str] | None) -> int:
    """Raises: what the command raises; Unwritten: what click writes by itself, such as help, cannot be written."""
    try:
        code = aj.main(None if arguments is None else list(arguments), prog_name="aj", standalone_mode=False)
        return int(code or 0)
    except SystemExit as end:  # so click ends completion; and, with 1, whatever nobody reads any more
        if not end.code:
            return Exit.DONE
        raise terminal.Unwritten("nobody reads it", reader_has_gone=True) from None
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        terminal.let_go(sys.stdout)
        raise terminal.Unwritten(error.strerror or "unknown", reader_has_gone=False) from None
