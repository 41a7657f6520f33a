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

/** All modes that clients of any version send. */
export const STREAM_MODES: readonly string[] = [
  ...LANGGRAPH_MODES,
  "messages",
  "messages-tuple",
  "events",
  "lifecycle",
];

/** Modes that MCP and AG-UI ask for. */
export const OWN_STREAM_MODES: readonly string[] = ["steps", "half-done"];
