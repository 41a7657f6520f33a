import {
  ERROR,
  INTERRUPT,
  WRITES_IDX_MAP,
  type CheckpointMetadata,
  type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import type { Encryption } from "../../../platform/database/database.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { toJsonb } from "../../../platform/lib/jsonb.ts";
import { boundedFailure } from "../../../platform/lib/thrown.ts";
import { encode, treeText } from "../../values/encoding.ts";
import { composeBody } from "../rows/checkpoint-body.ts";
import type { KnownShapes } from "../rows/known-shapes.ts";
import type { OwnMetadata } from "../rows/metadata.ts";
import type { NewShape } from "../rows/new-rows.ts";
import type { ValueWriter } from "../rows/value-writer.ts";
import type { QueuedCheckpoint, QueuedWrites } from "../write/batch.ts";
import type { KnownCheckpoint } from "../write/thread-writer.ts";
import type { GivenCheckpoint } from "./channel-values.ts";

export const toQueuedCheckpoint = (
  { checkpoint, checkpointNs, parentId }: GivenCheckpoint,
  { channels, deltaChannels }: Omit<KnownCheckpoint, "versions">,
  { common, rest }: OwnMetadata,
  {
    runId,
    shapes,
    encryption,
    staysOpen,
  }: {
    runId: string | null;
    shapes: KnownShapes;
    encryption: Encryption;
    staysOpen: (key: string) => boolean;
  },
): { queued: QueuedCheckpoint; newShape: NewShape | undefined } => {
  const { body, channelNames, shape } = composeBody(checkpoint, deltaChannels);
  const { newShape, hash } = shapes.refer(shape, treeText(encode(common)));
  const key = { checkpoint_ns: checkpointNs, checkpoint_id: checkpoint.id };
  const stored = encryption.encryptedMetadata(encode(rest) as JsonObject, key, staysOpen);
  const { jsonb, exact } = toJsonb(treeText(stored));
  const queued = {
    checkpointNs,
    checkpointId: checkpoint.id,
    parentId: parentId ?? null,
    runId,
    metadata: jsonb,
    metadataText: exact === undefined ? "" : treeText({ ...(encode(common) as JsonObject), ...stored }),
    body,
    channelNames,
    shape: hash,
    channels,
  };
  return { queued, newShape };
};

/** `own`: metadata of the run; LangGraph's own win. */
export const splitMetadata = (
  { source, parents, ...given }: CheckpointMetadata,
  own: OwnMetadata,
): OwnMetadata => {
  const rest: JsonObject = { ...own.rest, ...(given as JsonObject) };
  // An update of a state repeats the metadata of the checkpoint before.
  const ownCommon = Object.entries(own.common).filter(([key]) => !Object.hasOwn(rest, key));
  const common: JsonObject = { source, ...Object.fromEntries(ownCommon) };
  const hasParents = parents !== undefined && Object.keys(parents).length > 0;
  if (parents !== undefined) (hasParents ? rest : common).parents = parents;
  return { common, rest };
};

/** Indexes of LangGraph's own channels. A map, because a caller may name a channel `constructor`. */
const SPECIAL_INDEXES: ReadonlyMap<string, number> = new Map(Object.entries(WRITES_IDX_MAP));

/**
 * The last write to one of LangGraph's own channels counts. The others are numbered without them: with durability `exit`,
 * LangGraph stores again what it has read, in another order.
 */
export const toQueuedWrites = (
  writes: readonly PendingWrite[],
  values: ValueWriter,
): QueuedWrites["writes"] => {
  const queued: QueuedWrites["writes"] = new Map();
  let position = 0;
  for (const [channel, value] of writes) {
    const index = SPECIAL_INDEXES.get(channel) ?? position++;
    const shown = channel === ERROR ? boundedFailure(value) : value;
    if (index < 0 || !queued.has(index)) queued.set(index, [channel, values.prepareWrite(shown)]);
  }
  return queued;
};

export const hasStopped = (writes: readonly PendingWrite[]): boolean =>
  writes.some(([channel]) => channel === ERROR || channel === INTERRUPT);
