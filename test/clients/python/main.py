"""python3 main.py FILE COLUMN URL [ONLY]: runs the scenarios of a file against a server; see scenarios.py."""

from __future__ import annotations

import asyncio
import importlib
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
# Searched last: an installed package comes first.
sys.path.append(str(HERE / "stand_in"))

#: Exit code: a required module is not installed; its name is on the standard error.
MODULE_IS_MISSING = 3


async def main(file: str, column: str, url: str, only: str | None = None) -> None:
    try:
        from langgraph_sdk import get_client, get_sync_client

        for needed in ("orjson", "websockets"):
            importlib.import_module(needed)
        module = importlib.import_module(file)
    except ModuleNotFoundError as error:
        sys.stderr.write(error.name or str(error))
        sys.exit(MODULE_IS_MISSING)
    from scenarios import Awaited

    kind, _, transport = column.partition(", ")
    client = get_client(url=url) if kind == "async" else Awaited(get_sync_client(url=url))
    # The modules that a file needs beside the client of its column.
    more = module.arguments(kind, transport, url) if hasattr(module, "arguments") else []
    await module.scenario.run(only, client, *more)
    # A call that never returns must not keep the process alive.
    sys.stdout.flush()
    os._exit(0)


asyncio.run(main(*sys.argv[1:]))
