"""`RemoteGraph` of Python's LangGraph with a graph of this server."""

from __future__ import annotations

import uuid
from typing import Any

from langgraph.errors import GraphInterrupt
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Command

from scenarios import Awaited, Scenarios, collected, equal, raised, saying, texts

scenario = Scenarios()


class Graphs:
    """Remote graphs by their id; the synchronous methods are used like the asynchronous ones, which begin with `a`."""

    def __init__(self, kind: str, url: str) -> None:
        self._is_async = kind == "async"
        self._url = url

    def __call__(self, graph_id: str) -> Any:
        graph = RemoteGraph(graph_id, url=self._url)
        return _Asynchronous(graph) if self._is_async else Awaited(graph)


class _Asynchronous:
    def __init__(self, graph: RemoteGraph) -> None:
        self._graph = graph

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, f"a{name}")


def arguments(kind: str, _transport: str, url: str) -> list[Any]:
    return [Graphs(kind, url)]


def a_thread() -> Any:
    return {"configurable": {"thread_id": str(uuid.uuid4())}}


@scenario("invokes a graph, with a new thread and without one")
async def invoking(_client: Any, remote: Any) -> None:
    graph = remote("two-step")
    equal(texts(await graph.invoke(saying("hi"))), ["hi", "first", "second"])
    config = a_thread()
    await graph.invoke(saying("hi"), config)
    equal(len(texts(await graph.invoke(saying("more"), config))), 6)


@scenario("streams updates, values, messages, and those of subgraphs")
async def streaming(_client: Any, remote: Any) -> None:
    updates = await collected(remote("two-step").stream(saying("hi"), stream_mode="updates"))
    equal([list(update)[0] for update in updates], ["first", "second"])
    both = await collected(
        remote("research").stream(
            {"topic": "cats", "messages": []}, stream_mode=["updates", "values"], subgraphs=True
        )
    )
    equal({namespace[0].split(":")[0] for namespace, _, _ in both if namespace}, {"investigate"})
    tokens = await collected(remote("tokens").stream({"messages": [], "tokens": 5}, stream_mode="messages"))
    equal("".join(chunk["content"] for chunk, _ in tokens), "t0 t1 t2 t3 t4 ")


@scenario("reads and writes states, and the history")
async def states(_client: Any, remote: Any) -> None:
    graph = remote("counter")
    config = a_thread()
    await graph.invoke({"count": 4}, config)
    state = await graph.get_state(config)
    equal((state.values["count"], state.next), (5, ()))
    written = await graph.update_state(config, {"count": 10}, as_node="increment")
    equal(written["configurable"]["thread_id"], config["configurable"]["thread_id"])
    equal((await graph.get_state(config)).values["count"], 15)
    equal((await graph.get_state(state.config)).values["count"], 5)
    history = await collected(graph.get_state_history(config))
    equal([each.values["count"] for each in history], [15, 5, 4, 0])
    older = await collected(graph.get_state_history(config, before=history[1].config, limit=1))
    equal([each.values["count"] for each in older], [4])


@scenario("stops at an interrupt and continues with the answer")
async def interrupts(_client: Any, remote: Any) -> None:
    graph = remote("approval")
    config = a_thread()
    stopped: Any
    try:
        stopped = await graph.invoke(saying("a refund"), config)
    except GraphInterrupt as interrupt:
        stopped = interrupt
    assert stopped is not None
    state = await graph.get_state(config)
    equal(state.next, ("review",))
    equal(state.tasks[0].interrupts[0].value["question"], "Send this draft?")
    answered = await graph.invoke(Command(resume={"decision": "approve"}), config)
    equal(answered["status"], "sent")


@scenario("throws the graph's error")
async def failing(_client: Any, remote: Any) -> None:
    error = await raised(RemoteException, remote("failing").invoke({"reason": "out of luck"}))
    assert "out of luck" in str(error), str(error)


@scenario("draws the graph")
async def drawing(_client: Any, remote: Any) -> None:
    assert len((await remote("research").get_graph(xray=True)).nodes) > 4
