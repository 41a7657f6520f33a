/** As in the check of the table `checkpoint_elements`. */
export const ELEMENTS_PER_ROW_AT_MOST = 256;

export interface Batch {
  elements: Array<{ list: number; position: number; texts: string[] }>;
  contents: NewContent[];
  checkpoints: NewCheckpoint[];
  /** At most one per checkpoint and task. */
  writes: NewWrites[];
}

export interface NewContent {
  hash: string;
  text: string;
  /** With its large strings. Undefined for a large string, which is a part of others. */
  wholeText?: string;
}

export interface NewShape {
  hash: string;
  text: string;
  /** Exact as jsonb. */
  metadata: string;
}

export interface NewCheckpoint {
  checkpointNs: string;
  checkpointId: string;
  parentId: string | null;
  runId: string | null;
  metadata: string;
  /** All metadata; stored only if `metadata` isn't exact. */
  metadataText: string;
  shape: string;
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
