"""Every setting: its default, what it takes, what it refuses and in which words."""

from __future__ import annotations

import ipaddress
from dataclasses import fields
from typing import Any

import pytest

from aj.errors import SettingsError
from aj.given import variable
from aj.rate import Rate
from aj.settings import Allowed, ApiKey, Settings

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
KEY = bytes.fromhex("31f290f6bf06298aab4f08d43c3f082cf648a362da2da4b0")
LOOPBACK = ipaddress.ip_network("127.0.0.1")

# What a slash in the wrong place makes of a password: it would be shown as a part of the address.
WRONG_PATHS = ["redis:///:hunter2@h/0", "redis://h/0;password=hunter2", "redis://h/hunter2@x", "redis://:hunter2@/0"]

# field, default, a text that is accepted, its value, texts that are refused
ROWS: list[tuple[str, Any, str, Any, list[str]]] = [
    (
        "redis_url",
        None,
        "rediss://h:1/0",
        "rediss://h:1/0",
        ["", "h:6379", "http://h", "redis://", "redis://a b", *WRONG_PATHS],
    ),
    ("tasks", ("aj.tasks",), "shop.tasks, a", ("shop.tasks", "a"), ["", ",", "a-b", "a..b", ".a", "1a", "a;b"]),
    ("task_app", None, "shop.web:make_app()", "shop.web:make_app()", ["", "shop", "shop:", ":app", "a:b.c", "a:b(1)"]),
    ("prefix", "aj", "my:app.1_-", "my:app.1_-", ["", "a b", "a*", "é", "a" * 41, "{a}", "rq", "rq:a"]),
    ("queues", ("q:jobs2",), "a,b:c", ("a", "b:c"), ["", " , ", "a b", "a" * 101, "é"]),
    ("workers", 1, "256", 256, ["0", "257", "-1", "1.0", "one", ""]),
    ("jobs_per_horse", 100, "1", 1, ["0", "1000000001", "many"]),
    ("result_ttl_s", 86_400, "1", 1, ["0", "31622401", "1h", "1e3"]),
    ("tombstone_ttl_s", 604_800, "0", 0, ["-1", "316224001", "week"]),
    ("idempotency_ttl_s", 86_400, "90000", 90_000, ["0", "31622401", "day"]),
    ("job_timeout_s", 180, "2592000", 2_592_000, ["0", "2592001", "3m"]),
    ("lease_s", 15, "3", 3, ["2", "3601", " 15", "15 ", "+15", "\u0661\u0665"]),
    ("max_body_bytes", 65_536, "67108864", 67_108_864, ["1", "67108865", "64k"]),
    ("max_result_bytes", 1_048_576, "2", 2, ["1", "268435457", "1MiB"]),
    ("max_queued", 100_000, "1000000000", 10**9, ["0", "1000000001", "9" * 5000]),
    (
        "rate",
        None,
        "100/60",
        Rate(100, 60),
        ["100", "0/60", "100/0", "100/86401", "1.5/60", "-1/60", "100/60/2", "100/ 60"],
    ),
    ("webhook_secrets", (), f"{SECRET}, {SECRET}", (KEY, KEY), ["x", "whsec_", f"{SECRET},x", "whsec_é", "whsec_AAAA"]),
    (
        "api_keys",
        (),
        f"alice:{'a' * 64},b.o-b:{'0' * 64}",
        (ApiKey("alice", "a" * 64), ApiKey("b.o-b", "0" * 64)),
        [",", "alice", "alice:", f":{'a' * 64}", f"al ice:{'a' * 64}", f"alice:{'A' * 64}", f"alice:{'a' * 63}"],
    ),
    (
        "callback_allow",
        (Allowed(host=None, network=LOOPBACK, port=8141),),
        "Example.com:80",
        (Allowed(host="example.com", network=None, port=80),),
        [",", "http://a", "a:0", "a:65536", "a:b", "10.0.0.1/8", "1.2.3", "[::1", "[::1]x", "a/b", "é", "a b"],
    ),
    (
        "callback_schedule_s",
        (0, 5, 30, 120, 600, 3600, 21_600),
        "0, 1.5",
        (0.0, 1.5),
        ["", ",", "-1", "1e3", "inf", "5s"],
    ),
    ("callback_timeout_s", 15, "300", 300, ["0", "301", "0.5"]),
    ("host", "127.0.0.1", "::", "::", ["", "a b", "a/b", "[::1]"]),
    ("port", 8140, "65535", 65_535, ["0", "65536", "http"]),
    ("hooksink_port", 8141, "1", 1, ["0", "65536", ""]),
    ("web_workers", 2, "256", 256, ["0", "257", "two"]),
    ("web_threads", 600, "1024", 1024, ["0", "1025", "all"]),
    ("embedded", "auto", "never", "never", ["", "yes", "Auto", "auto "]),
    ("redis_server", None, "/opt/valkey-server", "/opt/valkey-server", ["", "a\nb"]),
    ("data_dir", ".aj", "/var/lib/aj", "/var/lib/aj", ["", "a\nb"]),
    ("dashboard", "read", "act", "act", ["", "on", "Read", "off "]),
    ("dashboard_operators", (), "alice, b.o-b", ("alice", "b.o-b"), ["", ",", "al ice", "é", "a" * 65]),
    ("log", "text", "json", "json", ["", "JSON", "logfmt", "text "]),
]
FULL_NAME_ONLY = {"dashboard", "log"}
HIDDEN = {"redis_url", "webhook_secrets", "api_keys"}


def test_every_setting_has_a_row_here() -> None:
    """A setting that is added is tested."""
    assert [row[0] for row in ROWS] == [each.name for each in fields(Settings)]


@pytest.mark.parametrize(("name", "default"), [row[:2] for row in ROWS])
def test_the_default_stands_where_nothing_is_said(name: str, default: object) -> None:
    """From an empty environment and from an empty config."""
    assert getattr(Settings.from_env({}), name) == default
    assert getattr(Settings.from_config({}), name) == default


@pytest.mark.parametrize(("name", "text", "value"), [(row[0], row[2], row[3]) for row in ROWS])
def test_an_accepted_text_becomes_its_value(name: str, text: str, value: object) -> None:
    """From the environment, and from a Flask config with `AJ_` and mostly without."""
    assert getattr(Settings.from_env({variable(name): text}), name) == value
    assert getattr(Settings.from_config({variable(name): text}), name) == value
    if name not in FULL_NAME_ONLY:
        assert getattr(Settings.from_config({name.upper(): text}), name) == value


@pytest.mark.parametrize("others", ["json", "/var/log/shop.log", {"level": "INFO"}, True])
def test_a_log_in_a_config_is_the_apps_own(others: object) -> None:
    """It is too common a key to be taken for ours, or refused."""
    assert Settings.from_config({"LOG": others}).log == "text"
    assert Settings.from_config({"LOG": others, "AJ_LOG": "json"}).log == "json"


@pytest.mark.parametrize(("name", "text"), [(row[0], text) for row in ROWS for text in row[4]])
def test_a_refused_text_is_named_with_what_is_accepted(name: str, text: str) -> None:
    """One line: the variable, the value unless it may hold a secret, and what would do."""
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({variable(name): text})
    shown = "a value that is not shown" if name in HIDDEN else repr(text)
    message = str(caught.value)
    assert message.startswith(f"{variable(name)} is {shown}; accepted: ")
    assert len(message) > len(f"{variable(name)} is {shown}; accepted: ") + 5
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("redis_url", "redis ://:hunter2@host"),
        ("redis_url", "amqp://:hunter2@host"),
        ("webhook_secrets", "hunter2"),
        ("webhook_secrets", "whsec_hunter2"),
        ("webhook_secrets", "whsec_hunter2é"),
    ],
)
def test_a_secret_never_shows_in_a_message(name: str, text: str) -> None:
    """Wrong secrets are mostly right ones with a slip."""
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({variable(name): text})
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_secret_never_shows_in_the_repr() -> None:
    """Neither the address of the store nor a key, in any spelling."""
    settings = Settings.from_env({"AJ_REDIS_URL": "redis://:hunter2@host", "AJ_WEBHOOK_SECRETS": SECRET})
    assert "hunter2" not in repr(settings)
    assert repr(KEY) not in repr(settings)
    assert "redis_url" not in repr(settings)
    assert "webhook_secrets" not in repr(settings)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("AJ_REDIS_URI", "did you mean AJ_REDIS_URL?"),
        ("AJ_RESULT_TTL", "did you mean AJ_RESULT_TTL_S?"),
        ("AJ_redis_url", "did you mean AJ_REDIS_URL?"),
        ("AJ_Lease_S", "did you mean AJ_LEASE_S?"),
        ("AJ_ZZZZZZZZ", "docs/settings.md lists them"),
    ],
)
def test_an_unknown_name_is_refused_with_a_suggestion(given: str, hint: str) -> None:
    """A slip in a name is not silently a default; the value, which may be a secret, is not shown."""
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({given: "hunter2"})
    assert str(caught.value) == f"{given} is not a setting of this version; {hint}"


def test_names_of_others_are_left_alone() -> None:
    """Only `AJ_` is ours in an environment."""
    assert Settings.from_env({"PATH": "x", "aj_port": "x", "PORT": "x", "LEASE_S": "x", "AJAX": "x"}) == Settings()


def test_what_the_command_line_reads_is_no_setting_of_a_server() -> None:
    """Who has both in one shell, as in a clone, can start a server there."""
    assert (
        Settings.from_env({"AJ_URL": "http://127.0.0.1:8140", "AJ_API_KEY": "aj_abc", "AJ_CHECK_SECRET": "whsec_x"})
        == Settings()
    )


def test_keys_of_callers_under_the_name_of_one_key_are_refused() -> None:
    """Else a missing letter would leave the API open to everybody."""
    with pytest.raises(SettingsError, match="did you mean AJ_API_KEYS") as caught:
        Settings.from_env({"AJ_API_KEY": "shop:" + 64 * "a"})
    assert "aaaa" not in str(caught.value)


def test_redis_url_stands_in_for_ours() -> None:
    """The name that platforms set; ours wins where both are set, and an empty one says nothing."""
    assert Settings.from_env({"REDIS_URL": "redis://a"}).redis_url == "redis://a"
    assert Settings.from_env({"REDIS_URL": "redis://a", "AJ_REDIS_URL": "redis://b"}).redis_url == "redis://b"
    assert Settings.from_env({"REDIS_URL": "x", "AJ_REDIS_URL": "redis://b"}).redis_url == "redis://b"
    assert Settings.from_env({"REDIS_URL": ""}).redis_url is None


def test_a_wrong_redis_url_is_named_as_it_was_given() -> None:
    """Who set `REDIS_URL` is not told about another variable."""
    with pytest.raises(SettingsError, match=r"^REDIS_URL is a value that is not shown; accepted: redis://"):
        Settings.from_env({"REDIS_URL": "localhost:6379"})


def test_a_wrong_config_key_is_named_as_it_was_given() -> None:
    """With `AJ_` or without."""
    for key in ("AJ_LEASE_S", "LEASE_S"):
        with pytest.raises(SettingsError, match=f"^{key} is '1'; accepted: a whole number from 3 to 3600"):
            Settings.from_config({key: 1})


def test_a_config_key_with_our_prefix_wins() -> None:
    """`PORT` may be the application's own; `AJ_PORT` is ours for certain. None means not set."""
    assert Settings.from_config({"AJ_PORT": 1, "PORT": 2}).port == 1
    assert Settings.from_config({"AJ_PORT": None, "PORT": 2}).port == 2
    assert Settings.from_config({"AJ_PORT": None, "PORT": None}).port == 8140


@pytest.mark.parametrize(
    ("key", "value", "name", "expected"),
    [
        ("LEASE_S", 30, "lease_s", 30),
        ("TASKS", ["a.b", "c"], "tasks", ("a.b", "c")),
        ("CALLBACK_SCHEDULE_S", (0, 0.5), "callback_schedule_s", (0.0, 0.5)),
        ("CALLBACK_ALLOW", [], "callback_allow", ()),
        ("WEBHOOK_SECRETS", [SECRET], "webhook_secrets", (KEY,)),
    ],
)
def test_a_config_may_hold_python_values(key: str, value: object, name: str, expected: object) -> None:
    """Numbers, lists and tuples, as Flask configs have them."""
    assert getattr(Settings.from_config({key: value}), name) == expected


@pytest.mark.parametrize("value", [True, 1.5, {"a": 1}, b"15", [1, 2]])
def test_a_config_value_of_the_wrong_kind_is_refused(value: object) -> None:
    """A truth is not a number of seconds."""
    with pytest.raises(SettingsError, match="LEASE_S"):
        Settings.from_config({"LEASE_S": value})


@pytest.mark.parametrize(
    ("text", "host", "network", "port"),
    [
        ("10.0.0.0/8", None, "10.0.0.0/8", None),
        ("10.0.0.0/8:443", None, "10.0.0.0/8", 443),
        ("127.0.0.1", None, "127.0.0.1/32", None),
        ("::1", None, "::1/128", None),
        ("fd00::/8", None, "fd00::/8", None),
        ("[::1]:8141", None, "::1/128", 8141),
        ("[fd00::/8]", None, "fd00::/8", None),
        ("hooks.internal", "hooks.internal", None, None),
        ("under_score:65535", "under_score", None, 65_535),
    ],
)
def test_an_allowed_destination_is_a_name_or_a_network(
    text: str, host: str | None, network: str | None, port: int | None
) -> None:
    """Each with or without a port."""
    expected = Allowed(host=host, network=None if network is None else ipaddress.ip_network(network), port=port)
    assert Settings.from_env({"AJ_CALLBACK_ALLOW": text}).callback_allow == (expected,)


@pytest.mark.parametrize("text", ["", "  "])
def test_nothing_at_all_may_be_allowed(text: str) -> None:
    """An empty list is a list: no private destination, not even our own receiver."""
    assert Settings.from_env({"AJ_CALLBACK_ALLOW": text}).callback_allow == ()


def test_a_key_lives_as_long_as_the_result_unless_told_otherwise() -> None:
    """A longer result life draws the default of the key's life with it."""
    assert Settings.from_env({"AJ_RESULT_TTL_S": "100000"}).idempotency_ttl_s == 100_000
    assert Settings.from_env({"AJ_RESULT_TTL_S": "10"}).idempotency_ttl_s == 86_400


def test_a_key_that_dies_before_the_result_is_refused() -> None:
    """Both variables and both values stand in the line."""
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"AJ_RESULT_TTL_S": "100", "AJ_IDEMPOTENCY_TTL_S": "99"})
    assert str(caught.value) == "AJ_IDEMPOTENCY_TTL_S is 99; it must be at least AJ_RESULT_TTL_S, which is 100"


def test_a_key_belongs_to_one_caller() -> None:
    """A caller may have several, as while they are replaced."""
    assert Settings.from_env({"AJ_API_KEYS": f"alice:{'a' * 64},alice:{'b' * 64}"}).api_keys
    with pytest.raises(SettingsError, match="AJ_API_KEYS has one key twice"):
        Settings.from_env({"AJ_API_KEYS": f"alice:{'a' * 64},bob:{'a' * 64}"})
