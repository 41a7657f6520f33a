"""Load tests of event streaming with the Python SDK; see event-streaming.acceptance.ts."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from event_streaming import arguments, messages_of, replies_of, tokens
from scenarios import Scenarios, equal

__all__ = ["arguments", "scenario"]

scenario = Scenarios(seconds_at_most=80, at_the_same_time=1)


async def turn_with_question(session: Any, thread_id: str, count: int, answer: Any) -> str | None:
    """The fault of a turn, if any."""
    async with session("dialogue", thread_id) as thread:
        await thread.start({"tokens": count})
        before = await messages_of(thread)
        if len(await thread.until_interrupted()) != 1:
            return f"{thread.raw.interrupts}"
        await thread.respond(answer)
        after = await replies_of(thread)
        output = await thread.output()
        answers = (before, after, output["decision"])
        wanted = ([("draft", tokens(count))], [tokens(count)], answer)
        return None if answers == wanted else f"{answers!r} instead of {wanted!r}"


@scenario("100 turns with a question and its answer, one after the other on one thread")
async def sessions(_client: Any, session: Any) -> None:
    # Closing a session of the synchronous client takes two seconds: four threads, 25 turns each.
    parts = 1 if session.is_async else 4

    async def on_one_thread() -> list[str]:
        thread_id = str(uuid.uuid4())
        turns = [
            await turn_with_question(session, thread_id, 10 + turn % 7, turn + 1) for turn in range(100 // parts)
        ]
        return [wrong for wrong in turns if wrong is not None]

    equal(sum(await asyncio.gather(*(on_one_thread() for _ in range(parts))), []), [])


@scenario("50 threads at once with 200 tokens each: none lost, none twice, in order")
async def at_once(_client: Any, session: Any) -> None:
    async def one() -> None:
        async with session("tokens") as thread:
            await thread.start({"messages": [], "tokens": 200})
            equal(await messages_of(thread), [("model", tokens(200))])

    await asyncio.gather(*(one() for _ in range(50)))
