export interface RequestFigures {
  method: string;
  /** The pattern of the route, not the path. */
  route: string;
  /** Undefined: the client left before the answer. */
  status: number | undefined;
  seconds: number;
  /** A stream, or a request that waits for a run. */
  isLong: boolean;
}

export interface ModelCall {
  model: string;
  seconds: number;
  failed: boolean;
}

export interface ToolCall {
  tool: string;
  seconds: number;
  failed: boolean;
}
