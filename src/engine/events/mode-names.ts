/** LangGraph's modes of the same name. */
export const LANGGRAPH_MODES = [
  "values",
  "updates",
  "debug",
  "tasks",
  "checkpoints",
  "custom",
  "tools",
] as const;

/** All that clients of any version send, and two of our own. */
export const STREAM_MODES: readonly string[] = [
  ...LANGGRAPH_MODES,
  "messages",
  "messages-tuple",
  "events",
  "lifecycle",
  "steps",
  "half-done",
];
