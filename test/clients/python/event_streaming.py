"""The Python SDK over event streaming: sessions on a thread."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import httpx

from scenarios import NotOffered, Scenarios, collected, equal, raised, saying, texts
from thread_stream import Sessions

scenario = Scenarios()


def arguments(kind: str, transport: str, url: str) -> list[Any]:
    return [Sessions(kind, transport, url)]


def tokens(count: int) -> str:
    return "".join(f"t{index} " for index in range(count))


#: The input and the output of the inner graph of `parent`.
SAID = " ".join(f"word{index}" for index in range(40))
REPEATED = f'You said: "{SAID}". I have no tools.'


async def messages_of(thread: Any) -> list[tuple[str | None, str]]:
    """The node and the text of each message of the root, until the run pauses or ends."""
    # Texts are read after the iteration, because they grow during it.
    messages = await collected(thread.each(thread.raw.messages))
    return [(message.node, await thread.text(message)) for message in messages]


async def replies_of(thread: Any) -> list[str]:
    """The texts of the messages that an answer led to.

    The synchronous client reads in a thread of its own: what comes before its user asks for messages again is lost to
    him. So there the last message of the state stands for them.
    """
    if thread.is_async:
        return [text for _node, text in await messages_of(thread)]
    return texts(await thread.output())[-1:]


@scenario("streams the values of a run, and its output")
async def values(_client: Any, session: Any) -> None:
    async with session("two-step") as thread:
        assert (await thread.start(saying("hi")))["run_id"]
        snapshots = await collected(thread.each(thread.raw.values))
        equal(texts(snapshots[-1]), ["hi", "first", "second"])
        equal(texts(await thread.output()), ["hi", "first", "second"])


@scenario("streams messages token by token")
async def messages(_client: Any, session: Any) -> None:
    async with session("tokens") as thread:
        await thread.start({"messages": [], "tokens": 50})
        equal(await messages_of(thread), [("model", tokens(50))])
        equal(texts(await thread.output()), [tokens(50)])


@scenario("streams tool calls with their results")
async def tools(_client: Any, session: Any) -> None:
    async with session("agent") as thread:
        await thread.start(saying("What is 2 + 3?"))
        made = await collected(thread.each(thread.raw.tool_calls))
        calls = [(call.name, call.input, await thread.result(call)) for call in made]
        equal([(name, arguments) for name, arguments, _ in calls], [("calculate", {"expression": "2 + 3"})])
        output = calls[0][2]
        equal((output["type"], output["status"]), ("tool", "success"))
        assert "5" in output["content"], output


@scenario("finds subgraphs, and their messages")
async def subgraphs(_client: Any, session: Any) -> None:
    async with session("parent") as thread:
        await thread.start(saying(SAID))
        found = []
        for child in await collected(thread.each(thread.raw.subgraphs)):
            said = [
                await thread.text(message) for message in await collected(thread.each(child.messages))
            ]
            found.append((child.graph_name, child.status, said))
        equal(found, [("child", "completed", [REPEATED])])
        equal(await messages_of(thread), [("outer", tokens(3))])


@scenario("finds the subgraphs of parallel branches")
async def parallel_subgraphs(_client: Any, session: Any) -> None:
    async with session("research") as thread:
        await thread.start({"topic": "cats", "messages": []})
        children = await collected(thread.each(thread.raw.subgraphs))
        equal([(child.graph_name, child.status) for child in children], [("investigate", "completed")] * 3)
        equal(len({child.path for child in children}), 3)


@scenario("returns custom events by name")
async def extensions(_client: Any, session: Any) -> None:
    async with session("dialogue") as thread:
        await thread.start({"messages": [], "tokens": 3})
        events = await collected(thread.each(thread.raw.extensions["progress"]))
        equal([event["step"] for event in events], ["draft"])


@scenario("stops at an interrupt and continues with the answer")
async def interrupts(_client: Any, session: Any) -> None:
    async with session("dialogue") as thread:
        await thread.start({"messages": [], "tokens": 20})
        equal(await messages_of(thread), [("draft", tokens(20))])
        interrupts = await thread.until_interrupted()
        equal([each["value"] for each in interrupts], [{"question": "Go on?", "after": 1}])
        await thread.respond({"yes": True})
        equal(await replies_of(thread), [tokens(20)])
        output = await thread.output()
        equal((output["decision"], len(output["messages"])), ({"yes": True}, 2))


@scenario("takes the input of a new run as the answer to an interrupt")
async def answer_by_input(_client: Any, session: Any) -> None:
    async with session("dialogue") as thread:
        await thread.start({"messages": [], "tokens": 2})
        await thread.until_interrupted()
        thread_id = thread.raw.thread_id
    async with session("dialogue", thread_id) as thread:
        await thread.start({"go": "on"})
        equal((await thread.output())["decision"], {"go": "on"})


@scenario("has several turns on one thread, each distinct from the earlier ones")
async def turns(_client: Any, session: Any) -> None:
    thread_id = str(uuid.uuid4())
    for turn in range(1, 6):
        async with session("tokens", thread_id) as thread:
            await thread.start({"messages": [], "tokens": 10 + turn})
            equal(await messages_of(thread), [("model", tokens(10 + turn))])
            equal(len((await thread.output())["messages"]), turn)


@scenario("streams all events in order, none twice")
async def events(_client: Any, session: Any) -> None:
    async with session("tokens") as thread:
        await thread.start({"messages": [], "tokens": 100})
        events = []
        async for event in thread.each(thread.raw.events):
            # Over WebSockets the SDK also returns the answer to its subscription.
            if event["type"] != "event":
                continue
            events.append(event)
            if event["method"] == "lifecycle" and event["params"]["data"]["event"] == "completed":
                break
        sequence = [event["seq"] for event in events]
        equal(sequence, sorted(set(sequence)))
        equal(len({event["event_id"] for event in events}), len(events))
        deltas = [
            event["params"]["data"]["delta"]["text"]
            for event in events
            if event["method"] == "messages" and event["params"]["data"]["event"] == "content-block-delta"
        ]
        equal("".join(deltas), tokens(100))


@scenario("subscribes to channels and namespaces")
async def subscriptions(_client: Any, session: Any) -> None:
    async with session("parent") as thread:
        await thread.start(saying(SAID))
        below = await collected(
            thread.each(thread.raw.subscribe(["messages"], namespaces=[["child"]], depth=2))
        )
        starts = [event for event in below if event["params"]["data"]["event"] == "message-start"]
        equal([event["params"]["namespace"][0].split(":")[0] for event in starts], ["child"])


@scenario("interleaves projections in order of arrival")
async def interleaving(_client: Any, session: Any) -> None:
    async with session("agent") as thread:
        await thread.start(saying("What is 2 + 3?"))
        names = []
        async for name, _item in thread.each(
            thread.raw.interleave_projections(["values", "messages", "tool_calls"])
        ):
            names.append(name)
        equal({name: names.count(name) for name in ("messages", "tool_calls")}, {"messages": 2, "tool_calls": 1})
        assert names.index("tool_calls") > names.index("messages"), names


@scenario("streams the failure of a run")
async def failing(_client: Any, session: Any) -> None:
    async with session("failing") as thread:
        await thread.start({"reason": "out of luck"})
        error = await raised(RuntimeError, thread.output())
        assert "out of luck" in str(error), str(error)


@scenario("ends the streams of a cancelled run")
async def cancelled(client: Any, session: Any) -> None:
    async with session("sleep") as thread:
        run = await thread.start({"messages": [], "milliseconds": 600_000})
        async for _snapshot in thread.each(thread.raw.values):
            while (await client.runs.get(thread.raw.thread_id, run["run_id"]))["status"] == "pending":
                await asyncio.sleep(0.01)
            await client.runs.cancel(thread.raw.thread_id, run["run_id"], wait=True)
        await raised(RuntimeError, thread.output())


@scenario("follows a run that was created as a run, not by a command")
async def other_wire(client: Any, session: Any) -> None:
    if not session.is_async:
        raise NotOffered("the synchronous client reads nothing before a run.start of its own")
    thread_id = (await client.threads.create())["thread_id"]
    async with session("two-step", thread_id) as thread:
        snapshots = []
        async for snapshot in thread.each(thread.raw.values):
            # The first one is the thread's state; then the events have been read.
            if not snapshots:
                await client.runs.create(thread_id, "two-step", input=saying("hi"))
            snapshots.append(snapshot)
        equal(texts(snapshots[-1]), ["hi", "first", "second"])


@scenario("is refused a missing assistant, and an answer without an interrupt")
async def refusals(_client: Any, session: Any) -> None:
    async with session("no-such-graph") as thread:
        error = await raised(httpx.HTTPStatusError, thread.start(saying("hi")))
        equal(error.response.status_code, 404)
    async with session("two-step") as thread:
        await raised(RuntimeError, thread.respond(True))


@scenario("draws the graph of its assistant")
async def tree(_client: Any, session: Any) -> None:
    async with session("two-step") as thread:
        nodes = (await thread.tree())["nodes"]
        equal(sorted(node["id"] for node in nodes), ["__end__", "__start__", "first", "second"])
