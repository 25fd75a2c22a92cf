"""Tasks as a caller sees them: the list of them, and what a submission to each may hold."""

from __future__ import annotations

from typing import Any

from aj.registry import Registry, Task
from aj.settings import Settings

LONGEST_URL = 2048


def make_catalogue(registry: Registry, settings: Settings) -> dict[str, Any]:
    """The body of `GET /tasks`: each task with what it takes and how it runs, in the order of definition."""
    return {"tasks": [_entry(task, registry, settings) for task in registry]}


def _entry(task: Task, registry: Registry, settings: Settings) -> dict[str, Any]:
    return {
        "name": task.name,
        "default": task is registry.default,
        **({"description": task.description} if task.description else {}),
        "queue": task.queue or settings.queues[0],
        "timeout_s": task.timeout_s or settings.job_timeout_s,
        "result_ttl_s": settings.lives_s(task.result_ttl_s)[0],
        "retries": task.retries,
        **({"retry_delays_s": list(task.retry_delays_s)} if task.retries else {}),
        "parameters": task.schema,
    }


def submission_schemas(registry: Registry) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of a submission, and the components that it refers to: one for each task, and their definitions."""
    components: dict[str, Any] = {}
    for number, task in enumerate(registry):
        # Definitions are named after the task's number, since a name may hold any separator.
        schema = task.schema_with_refs(f"#/components/schemas/of-{number}.{{model}}")
        for name, definition in schema.pop("$defs", {}).items():
            components[f"of-{number}.{name}"] = definition
        components[f"task.{task.name}"] = _submission(task, schema, is_default=task is registry.default)
    refs = [{"$ref": f"#/components/schemas/task.{task.name}"} for task in registry]
    return (refs[0] if len(refs) == 1 else {"oneOf": refs}), components


def _submission(task: Task, schema: dict[str, Any], *, is_default: bool) -> dict[str, Any]:
    """The task's parameters beside our own members. Only the default task may go without its name."""
    named = {"const": task.name} if not is_default else {"enum": [task.name, None], "default": task.name}
    return {
        **schema,
        "title": task.name,
        **({"description": task.description} if task.description else {}),
        "properties": {**schema.get("properties", {}), "task": named, **_OURS},
        "required": [*schema.get("required", []), *([] if is_default else ["task"])],
    }


_OURS = {
    "callback_url": {
        "type": ["string", "null"],
        "format": "uri",
        "maxLength": LONGEST_URL,
        "description": "Where the webhook goes when the job has ended: http or https, and an address that may be "
        "called.",
    },
    "metadata": {
        "type": ["object", "null"],
        "description": "Yours: at most 4096 bytes of JSON, shown in the job and the webhook.",
    },
}
