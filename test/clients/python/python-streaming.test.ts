import { describePython } from "./python-scenarios.ts";

for (const column of ["async, SSE", "async, WebSocket", "sync, SSE", "sync, WebSocket"])
  describePython("Event streaming: sessions of Python", "event_streaming", column);
