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

/** All that clients of any version send. AG-UI asks for modes of its own beside these. */
export const STREAM_MODES: readonly string[] = [
  ...LANGGRAPH_MODES,
  "messages",
  "messages-tuple",
  "events",
  "lifecycle",
];
