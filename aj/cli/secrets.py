"""`aj key new` and `aj secret new`: what goes into the configuration of an API and of its callers."""

from __future__ import annotations

import click

from aj.access import new_key
from aj.cli.exits import Exit
from aj.cli.terminal import say, say_json
from aj.errors import SettingsError
from aj.settings import Settings
from aj.signature import new_secret

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group
def key() -> None:
    """Make API keys."""


@key.command("new")
@click.argument("name")
@_as_json
def new_api_key(name: str, as_json: bool) -> int:
    """Make an API key for the caller NAME, and show what goes into AJ_API_KEYS.

    NAME is made of letters, digits, dots, dashes and underscores.
    """
    made, digest = new_key()
    try:
        keys = Settings.from_env({"AJ_API_KEYS": f"{name}:{digest}"}).api_keys
    except SettingsError:
        keys = ()
    if [each.name for each in keys] != [name]:  # what holds a comma may read as another key and a name
        raise click.BadParameter(f"{name!r} is no name for a caller")
    if as_json:
        say_json({"name": name, "key": made, "aj_api_keys": f"{name}:{digest}"})
    else:
        say(f"for the caller, shown only now:  {made}", f"to add to AJ_API_KEYS:           {name}:{digest}")
    return Exit.DONE


@click.group
def secret() -> None:
    """Make secrets that sign webhooks."""


@secret.command("new")
@_as_json
def new_webhook_secret(as_json: bool) -> int:
    """Make a secret for AJ_WEBHOOK_SECRETS, which signs webhooks and lets receivers verify them."""
    made = new_secret()
    if as_json:
        say_json({"secret": made})
    else:
        say(made)
    return Exit.DONE
