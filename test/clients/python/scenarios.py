"""Support for the scenarios of the Python clients, and their execution.

A scenario is a sentence and a function that raises if the sentence does not hold. `main.py` runs those of one file for
one column of docs/compatibility.md, and prints a line of JSON for each: `{"row", "error", "skipped"}`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

SECONDS_AT_MOST = 25
#: Each waiting call of a synchronous client takes one.
THREADS_AT_MOST = 200

Scenario = Callable[..., Awaitable[None]]


class NotOffered(Exception):
    """The reason why the client of this column does not offer the scenario's function."""


class Scenarios:
    """The scenarios of a file, in order."""

    def __init__(self, seconds_at_most: float = SECONDS_AT_MOST, at_the_same_time: int = 100) -> None:
        self.all: list[tuple[str, Scenario]] = []
        self.seconds_at_most = seconds_at_most
        self.turnstile = asyncio.Semaphore(at_the_same_time)

    def __call__(self, row: str) -> Callable[[Scenario], Scenario]:
        def add(scenario: Scenario) -> Scenario:
            self.all.append((row, scenario))
            return scenario

        return add

    async def run(self, only: str | None, *arguments: Any) -> None:
        """Concurrently, unless that is too much: closing a session of the synchronous client takes two seconds."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS_AT_MOST))
        await asyncio.gather(
            *(
                self._run_one(row, scenario, arguments)
                for row, scenario in self.all
                if only is None or only in row
            )
        )

    async def _run_one(self, row: str, scenario: Scenario, arguments: tuple[Any, ...]) -> None:
        error = skipped = None
        try:
            async with self.turnstile:
                await asyncio.wait_for(scenario(*arguments), self.seconds_at_most)
        except NotOffered as reason:
            skipped = str(reason)
        except BaseException:  # also a cancellation: the time is up
            error = traceback.format_exc()
        sys.stdout.write(json.dumps({"row": row, "error": error, "skipped": skipped}) + "\n")
        sys.stdout.flush()


class _Answer:
    """The result of a synchronous client's call: awaited or iterated, the call runs in a thread of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call

    def __await__(self) -> Any:
        return asyncio.to_thread(self._call).__await__()

    async def __aiter__(self) -> Any:
        iterator = iter(await self)
        end = object()
        while (item := await asyncio.to_thread(next, iterator, end)) is not end:
            yield item


class Awaited:
    """A synchronous client with the interface of the asynchronous one, so each scenario is written once for both."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._client, name)
        if not callable(value):
            return Awaited(value)
        return lambda *args, **options: _Answer(lambda: value(*args, **options))


async def collected(items: Any) -> list[Any]:
    return [item async for item in items]


async def raised(kind: type[BaseException], awaitable: Any) -> BaseException:
    """The error of this kind that a call raises."""
    try:
        await awaitable
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def equal(found: Any, wanted: Any) -> None:
    if found != wanted:
        raise AssertionError(f"{found!r} instead of {wanted!r}")


def saying(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def texts(values: dict[str, Any]) -> list[Any]:
    return [message["content"] for message in values["messages"]]
