"""`client.threads.stream` of the Python SDK, its asynchronous and its synchronous form behind one interface."""

from __future__ import annotations

import asyncio
from typing import Any

from langgraph_sdk import get_client, get_sync_client


class AsyncThread:
    is_async = True

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    async def __aenter__(self) -> AsyncThread:
        await self.raw.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.raw.__aexit__(*error)

    async def start(self, input: Any, **options: Any) -> Any:
        return await self.raw.run.start(input=input, **options)

    async def respond(self, response: Any, **options: Any) -> Any:
        return await self.raw.run.respond(response, **options)

    async def output(self) -> Any:
        return await self.raw.output

    async def tree(self) -> Any:
        return await self.raw.agent.get_tree()

    async def each(self, projection: Any) -> Any:
        async for item in projection:
            yield item

    async def text(self, message: Any) -> str:
        return await message.text

    async def result(self, call: Any) -> Any:
        return await call.output

    async def until_interrupted(self) -> list[Any]:
        while not self.raw.interrupted:
            await asyncio.sleep(0.005)
        return list(self.raw.interrupts)


class SyncThread(AsyncThread):
    """Every call runs in a thread of its own, because it would block the loop."""

    is_async = False

    async def __aenter__(self) -> SyncThread:
        await asyncio.to_thread(self.raw.__enter__)
        return self

    async def __aexit__(self, *error: Any) -> None:
        await asyncio.to_thread(self.raw.__exit__, *error)

    async def start(self, input: Any, **options: Any) -> Any:
        return await asyncio.to_thread(lambda: self.raw.run.start(input=input, **options))

    async def respond(self, response: Any, **options: Any) -> Any:
        return await asyncio.to_thread(lambda: self.raw.run.respond(response, **options))

    async def output(self) -> Any:
        return await asyncio.to_thread(lambda: self.raw.output)

    async def tree(self) -> Any:
        return await asyncio.to_thread(self.raw.agent.get_tree)

    async def each(self, projection: Any) -> Any:
        iterator = iter(projection)
        end = object()
        while (item := await asyncio.to_thread(next, iterator, end)) is not end:
            yield item

    async def text(self, message: Any) -> str:
        return await asyncio.to_thread(lambda: str(message.text))

    async def result(self, call: Any) -> Any:
        return await asyncio.to_thread(lambda: call.output)


class Sessions:
    """Opens sessions of one kind (async, sync) over one transport (SSE, WebSocket)."""

    def __init__(self, kind: str, transport: str, url: str) -> None:
        self.is_async = kind == "async"
        self._transport = {"SSE": "sse", "WebSocket": "websocket"}[transport]
        self._client = get_client(url=url) if self.is_async else get_sync_client(url=url)

    def __call__(self, assistant_id: str, thread_id: str | None = None) -> AsyncThread:
        raw = self._client.threads.stream(thread_id, assistant_id=assistant_id, transport=self._transport)
        return AsyncThread(raw) if self.is_async else SyncThread(raw)
