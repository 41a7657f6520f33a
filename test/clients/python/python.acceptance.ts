import { describePython } from "./python-scenarios.ts";

for (const column of ["async, SSE", "async, WebSocket", "sync, SSE", "sync, WebSocket"])
  describePython("Event streaming: under load with Python", "event_acceptance", column);
