/** Limit of one row of `checkpoint_elements`, as in the check of the table. */
export const ELEMENTS_PER_ROW_AT_MOST = 256;

/** All that one statement stores. */
export interface Batch {
  elements: Array<{ list: number; position: number; texts: string[] }>;
  contents: NewContent[];
  checkpoints: NewCheckpoint[];
  /** At most one per checkpoint and task. */
  writes: NewWrites[];
}

/** A text that is stored once per thread. */
export interface NewContent {
  hash: string;
  text: string;
}

/** Common parts of many checkpoints, stored once. */
export interface NewShape extends NewContent {
  /** A JSON object, exact as jsonb. */
  metadata: string;
}

export interface NewCheckpoint {
  checkpointNs: string;
  checkpointId: string;
  parentId: string | null;
  runId: string | null;
  /** The metadata that the shape lacks. */
  metadata: string;
  /** All metadata; stored only if `metadata` isn't exact. */
  metadataText: string;
  /** Hash of its shape. */
  shape: string;
  /** See row-text.ts. */
  record: string;
  segments: number[];
  contents: string[];
}

export interface NewWrites {
  checkpointNs: string;
  checkpointId: string;
  taskId: string;
  runId: string | null;
  writes: string;
  segments: number[];
  contents: string[];
}
