"""The Python SDK over the API of resources and run streams."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from scenarios import Scenarios, collected, equal, raised, saying, texts

scenario = Scenarios()

LONG = {"messages": [], "milliseconds": 600_000}


async def a_thread(client: Any) -> str:
    return (await client.threads.create())["thread_id"]


async def until_running(client: Any, thread_id: str, run_id: str) -> None:
    while (await client.runs.get(thread_id, run_id))["status"] != "running":
        await asyncio.sleep(0.01)


@scenario("manages assistants and their versions")
async def assistants(client: Any) -> None:
    mark = {"mark": str(uuid.uuid4())}
    made = await client.assistants.create("agent", name="one", metadata=mark, context={"system_prompt": "a"})
    assistant_id = made["assistant_id"]
    equal((await client.assistants.get(assistant_id))["name"], "one")
    await client.assistants.update(assistant_id, name="two", context={"system_prompt": "b"})
    versions = await client.assistants.get_versions(assistant_id)
    equal([version["version"] for version in versions], [2, 1])
    equal((await client.assistants.set_latest(assistant_id, 1))["context"], {"system_prompt": "a"})
    found = await client.assistants.search(metadata=mark, response_format="object")
    equal([each["assistant_id"] for each in found["assistants"]], [assistant_id])
    equal(await client.assistants.count(metadata=mark), 1)
    await client.assistants.delete(assistant_id)
    await raised(NotFoundError, client.assistants.get(assistant_id))


@scenario("draws a graph, and shows its schemas and subgraphs")
async def graphs(client: Any) -> None:
    drawing = await client.assistants.get_graph("research", xray=True)
    assert len(drawing["nodes"]) > 4, drawing
    assert all(set(edge) <= {"source", "target", "data", "conditional"} for edge in drawing["edges"]), drawing
    schemas = await client.assistants.get_schemas("research")
    assert "topic" in schemas["input_schema"]["properties"], schemas
    subgraphs = await client.assistants.get_subgraphs("research", recurse=True)
    equal(list(subgraphs), ["investigate"])


@scenario("manages threads")
async def threads(client: Any) -> None:
    mark = {"mark": str(uuid.uuid4())}
    thread_id = str(uuid.uuid4())
    await client.threads.create(thread_id=thread_id, metadata=mark, graph_id="two-step")
    await raised(ConflictError, client.threads.create(thread_id=thread_id))
    await client.threads.create(thread_id=thread_id, if_exists="do_nothing")
    await client.threads.update(thread_id, metadata={"more": 1})
    assert await client.threads.update(thread_id, metadata={"less": 1}, return_minimal=True) is None
    thread = await client.threads.get(thread_id)
    equal({**mark, "more": 1, "less": 1}.items() <= thread["metadata"].items(), True)
    equal(await client.threads.count(metadata=mark), 1)
    copy = await client.threads.copy(thread_id)
    found = await client.threads.search(metadata=mark, sort_by="created_at", sort_order="asc", select=["thread_id"])
    equal(found, [{"thread_id": thread_id}, {"thread_id": copy["thread_id"]}])
    await client.threads.delete(thread_id)
    await client.threads.prune([copy["thread_id"]])
    equal(await client.threads.count(metadata=mark), 0)


@scenario("reads and writes states, and the history")
async def states(client: Any) -> None:
    thread_id = await a_thread(client)
    equal((await client.threads.get_state(thread_id))["values"], {})
    await client.runs.wait(thread_id, "counter", input={"count": 4})
    state = await client.threads.get_state(thread_id)
    equal(state["values"]["count"], 5)
    written = await client.threads.update_state(thread_id, {"count": 10}, as_node="increment")
    equal(written["checkpoint"]["thread_id"], thread_id)
    equal((await client.threads.get_state(thread_id))["values"]["count"], 15)
    at_first = await client.threads.get_state(thread_id, checkpoint=state["checkpoint"])
    equal(at_first["values"]["count"], 5)
    history = await client.threads.get_history(thread_id)
    equal([each["values"]["count"] for each in history], [15, 5, 4, 0])
    older = await client.threads.get_history(thread_id, limit=1, before=history[1]["checkpoint"])
    equal([each["values"]["count"] for each in older], [4])


@scenario("waits for a run, joins it, lists it, deletes it")
async def runs(client: Any) -> None:
    thread_id = await a_thread(client)
    created: list[Any] = []
    values = await client.runs.wait(thread_id, "two-step", input=saying("hi"), on_run_created=created.append)
    equal(texts(values), ["hi", "first", "second"])
    equal([(each["thread_id"], bool(each["run_id"])) for each in created], [(thread_id, True)])
    run = await client.runs.create(thread_id, "two-step", input=saying("more"), metadata={"n": 2})
    equal(texts(await client.runs.join(thread_id, run["run_id"]))[3:], ["more", "first", "second"])
    equal((await client.runs.get(thread_id, run["run_id"]))["status"], "success")
    listed = await client.runs.list(thread_id, select=["run_id", "status"])
    equal([each["status"] for each in listed], ["success", "success"])
    await client.runs.delete(thread_id, run["run_id"])
    equal(len(await client.runs.list(thread_id)), 1)
    equal(texts(await client.runs.wait(None, "two-step", input=saying("alone"))), ["alone", "first", "second"])
    batch = await client.runs.create_batch([{"assistant_id": "two-step", "input": saying("one")}])
    equal(len(batch), 1)


@scenario("cancels runs, and gets a refusal for conflicts")
async def cancelling(client: Any) -> None:
    thread_id = await a_thread(client)
    run = await client.runs.create(thread_id, "sleep", input=LONG)
    await until_running(client, thread_id, run["run_id"])
    await raised(
        ConflictError, client.runs.create(thread_id, "sleep", input=LONG, multitask_strategy="reject")
    )
    await raised(ConflictError, client.threads.update_state(thread_id, {"milliseconds": 1}))
    await client.runs.cancel(thread_id, run["run_id"], wait=True)
    equal((await client.runs.get(thread_id, run["run_id"]))["status"], "interrupted")
    other = await client.runs.create(thread_id, "sleep", input=LONG)
    await client.runs.cancel_many(thread_id=thread_id, run_ids=[other["run_id"]], action="rollback")
    while await client.runs.list(thread_id, status="running"):
        await asyncio.sleep(0.01)


@scenario("streams a run: values, updates, messages, custom events")
async def streaming(client: Any) -> None:
    thread_id = await a_thread(client)
    parts = await collected(
        client.runs.stream(thread_id, "two-step", input=saying("hi"), stream_mode=["values", "updates"])
    )
    equal([part.event for part in parts if part.event != "end"], ["metadata", *["values", "updates"] * 2, "values"])
    tokens = await collected(
        client.runs.stream(None, "tokens", input={"messages": [], "tokens": 20}, stream_mode="messages-tuple")
    )
    text = "".join(part.data[0]["content"] for part in tokens if part.event == "messages")
    equal(text, "".join(f"t{index} " for index in range(20)))
    custom = await collected(client.runs.stream(None, "custom-events", input={"count": 5}, stream_mode="custom"))
    equal([part.data for part in custom if part.event == "custom"], [{"index": index} for index in range(5)])


@scenario("streams in its newer form, with namespaces")
async def streaming_v2(client: Any) -> None:
    parts = await collected(
        client.runs.stream(
            None,
            "research",
            input={"topic": "cats", "messages": []},
            stream_mode=["values", "updates"],
            stream_subgraphs=True,
            version="v2",
        )
    )
    equal({part["type"] for part in parts}, {"metadata", "values", "updates"})
    namespaces = {part["ns"][0].split(":")[0] for part in parts if part["ns"]}
    equal(namespaces, {"investigate"})


@scenario("streams the failure of a run")
async def failing(client: Any) -> None:
    parts = await collected(client.runs.stream(None, "failing", input={"reason": "out of luck"}))
    errors = [part.data for part in parts if part.event == "error"]
    equal([error["message"] for error in errors], ["out of luck"])


@scenario("joins a stream from its first event, and after one")
async def rejoining(client: Any) -> None:
    thread_id = await a_thread(client)
    run = await client.runs.create(
        thread_id,
        "sleep",
        input={"messages": [], "milliseconds": 500},
        stream_mode="custom",
        stream_resumable=True,
    )
    seen = await collected(client.runs.join_stream(thread_id, run["run_id"], last_event_id="-1"))
    seen = [part for part in seen if part.event != "end"]
    equal(seen[-1].data, {"slept": 500})
    rest = await collected(client.runs.join_stream(thread_id, run["run_id"], last_event_id=seen[1].id))
    equal([part.id for part in rest if part.event != "end"], [part.id for part in seen[2:]])


@scenario("stops at an interrupt and continues with the answer")
async def interrupts(client: Any) -> None:
    thread_id = await a_thread(client)
    values = await client.runs.wait(thread_id, "approval", input=saying("a refund"))
    equal(values["__interrupt__"][0]["value"]["question"], "Send this draft?")
    thread = await client.threads.get(thread_id)
    equal(thread["status"], "interrupted")
    equal(len(thread["interrupts"]), 1)
    answered = await client.runs.wait(thread_id, "approval", command={"resume": {"decision": "approve"}})
    equal(answered["status"], "sent")


@scenario("manages items in the store")
async def store(client: Any) -> None:
    space = ["python", str(uuid.uuid4())]
    await client.store.put_item(space, key="one", value={"color": "red", "n": 1})
    await client.store.put_item([*space, "deep"], key="two", value={"color": "blue"})
    equal((await client.store.get_item(space, key="one"))["value"], {"color": "red", "n": 1})
    found = await client.store.search_items(space, filter={"color": "red"})
    equal([item["key"] for item in found["items"]], ["one"])
    spaces = await client.store.list_namespaces(prefix=space)
    listed = spaces["namespaces"] if isinstance(spaces, dict) else spaces
    equal(sorted(listed), [space, [*space, "deep"]])
    await client.store.delete_item(space, key="one")
    equal(await client.store.get_item(space, key="one"), None)


@scenario("gets errors with their type, reason and request id")
async def errors(client: Any) -> None:
    missing = await raised(NotFoundError, client.threads.get(str(uuid.uuid4())))
    assert "not found" in str(missing).lower(), str(missing)
    assert missing.request_id, "the answer has no x-request-id"
    await raised(UnprocessableEntityError, client.threads.get("no-uuid"))
