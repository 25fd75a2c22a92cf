"""The command `aj check URL`: reads its options, plays the check, prints the report. Holds no rule of the contract."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from aj.check.forms import is_base, is_host, json_value, resource
from aj.check.options import Call, Options
from aj.check.point import Finding, Level, State
from aj.check.points import ALL
from aj.check.profile import Profile, load
from aj.check.report import COLOURS, details, document, exit_code, headline, not_applicable, summary
from aj.check.run import run
from aj.check.scene import Scene
from aj.errors import CheckError, SettingsError
from aj.signature import decode_secret

MOST_S = 86_400


@click.command()
@click.argument("url")
@click.option("--profile", default="aj", show_default=True, help="How the API spells the contract: a name or a file.")
@click.option(
    "--level",
    type=click.Choice([each.value for each in Level]),
    default=Level.COMPLETE.value,
    show_default=True,
    help="How much is played; each level has those before it in it.",
)
@click.option("--api-key", envvar="AJ_API_KEY", default="", help="Better in the environment, as AJ_API_KEY.")
@click.option("--body", help="The submission to use, as JSON.")
@click.option("--slow-body", help="A submission of a job that takes some seconds, as JSON.")
@click.option("--failing-body", help="A submission of a job that fails, as JSON.")
@click.option("--expiring-body", help="A submission of a job whose result lives for a few seconds only, as JSON.")
@click.option("--path", help="Where submissions go, where it is not the profile's; so --slow-path, --failing-path.")
@click.option("--slow-path", hidden=True)
@click.option("--failing-path", hidden=True)
@click.option("--callback-host", help="HOST or HOST:PORT under which the API reaches this machine, for webhooks.")
@click.option("--secret", envvar="AJ_CHECK_SECRET", help="The secret that signs webhooks, whsec_…")
@click.option("--timeout", default=10.0, show_default=True, help="Seconds for one exchange in all.")
@click.option("--job-timeout", default=60.0, show_default=True, help="Seconds for a job or a webhook to come.")
@click.option("--brief", is_flag=True, help="Show no exchanges of what holds.")
@click.option("--no-color", envvar="NO_COLOR", hidden=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def check(context: click.Context, /, url: str, **given: Any) -> None:
    """Play the contract against the asynchronous HTTP API at URL, and say what holds.

    It submits up to eighty jobs there. The exit code is 0 where all holds that could be played, 1 where something is
    broken, 2 for a wrong option or profile, 3 where it could not be played.
    """
    if given["no_color"]:
        context.color = False
    try:
        source = context.get_parameter_source("api_key")
        options = replace(_options(url, given), key_is_wanted=source is not ParameterSource.ENVIRONMENT)
    except (CheckError, SettingsError) as error:
        raise click.UsageError(str(error)) from None
    level, reporter = Level(given["level"]), _Reporter(given["as_json"], given["brief"])
    with Scene(options) as scene:
        outcome = run(scene, ALL, level, reporter.tell)
    if given["as_json"]:
        click.echo(json.dumps(document(outcome, level, url, options.profile.name), indent=2))
    else:
        for line in not_applicable(outcome):
            click.secho(line, fg=COLOURS[State.NOT_APPLICABLE])
        click.echo(summary(outcome, level))
    context.exit(exit_code(outcome))


@dataclass(frozen=True, slots=True)
class _Reporter:
    """Prints each finding as soon as it is known, unless one JSON document is wanted."""

    is_silent: bool
    is_brief: bool

    def tell(self, finding: Finding) -> None:
        if self.is_silent or finding.state is State.NOT_APPLICABLE:
            return
        click.secho(headline(finding), fg=COLOURS[finding.state])
        for line in details(finding, self.is_brief):
            click.echo(line)


def _options(url: str, given: dict[str, Any]) -> Options:
    """Raises: CheckError, SettingsError: an option is wrong."""
    if not is_base(url):
        raise CheckError(f"{url!r} is no base address; such as http://127.0.0.1:8140 or https://host/prefix")
    if not (0 < given["timeout"] <= MOST_S and 0 < given["job_timeout"] <= MOST_S):
        raise CheckError(f"a time must be more than 0 seconds, and at most {MOST_S}")
    if not (given["api_key"].isascii() and given["api_key"].isprintable()):
        raise CheckError("the API key must be visible ASCII")
    profile = load(given["profile"])
    _expect_known(profile)
    submit = profile.submit
    call = _call("", given, submit.path, submit.body) or Call(submit.path, submit.body)
    return Options(
        base_url=url,
        profile=profile,
        call=call,
        slow=_call("slow_", given, submit.slow_path or call.path, submit.slow_body),
        failing=_call("failing_", given, submit.failing_path or call.path, submit.failing_body),
        expiring=_call("expiring_", given, call.path, None),
        api_key=given["api_key"],
        callback=_callback(given["callback_host"], urlsplit(url).hostname or ""),
        secret=decode_secret(given["secret"]) if given["secret"] else None,
        timeout_s=given["timeout"],
        job_timeout_s=given["job_timeout"],
    )


def _expect_known(profile: Profile) -> None:
    """Raises: CheckError: it leaves out what there is not."""
    known = {name for each in ALL for name in (each.name, *each.group.split())}
    for name in profile.not_offered:
        if name not in known:
            raise CheckError(
                f"profile {profile.name}: not_offered has {name}, which is no point and no group of points"
            )


def _call(kind: str, given: dict[str, Any], path: str, body: Any) -> Call | None:
    """The submission of this kind: what was given, else the profile's, else none."""
    text = given[f"{kind}body"]
    if text is not None:
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            raise CheckError(f"--{kind.replace('_', '-')}body is not JSON: {text[:80]!r}") from None
        if json_value(body):  # such as NaN, which Python reads and JSON does not have
            raise CheckError(f"--{kind.replace('_', '-')}body {json_value(body)}: {text[:80]!r}")
    path = given.get(f"{kind}path") or path
    wrong = resource(path)
    if wrong:
        raise CheckError(f"--{kind.replace('_', '-')}path {wrong}")
    return None if body is None else Call(path, body)


def _callback(text: str | None, host: str) -> tuple[str, int] | None:
    """Under which name this machine is reached: loopback, where the API is there too."""
    if text is None:
        return ("127.0.0.1", 0) if host in ("localhost", "127.0.0.1", "::1") else None
    name, colon, port = text.partition(":")
    if not is_host(name) or (colon and not (port.isdecimal() and port.isascii() and 0 < int(port[:6]) < 65536)):
        raise CheckError(f"--callback-host must be HOST or HOST:PORT, not {text!r}")
    return (name, int(port) if colon else 0)
