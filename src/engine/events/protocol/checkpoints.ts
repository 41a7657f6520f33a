/** A checkpoint as the protocol tells it. Before each `values` LangGraph streams that of the step. */
export interface CheckpointEnvelope {
  id: string;
  parent_id?: string;
  step?: number;
  source?: string;
}

interface Configured {
  configurable?: { checkpoint_id?: string };
}

/** What LangGraph streams in the mode `checkpoints`. */
interface WholeCheckpoint {
  config?: Configured;
  parentConfig?: Configured;
  metadata?: { step?: number; source?: string };
}

export const isEnvelope = (payload: unknown): payload is CheckpointEnvelope =>
  typeof payload === "object" &&
  payload !== null &&
  "id" in payload &&
  typeof payload.id === "string" &&
  !("config" in payload);

/** From a whole checkpoint, which LangGraph streams in the place of envelopes to who has asked for the mode `checkpoints`. */
export const envelopeOf = (payload: unknown): CheckpointEnvelope | undefined => {
  const { config, parentConfig, metadata } = payload as WholeCheckpoint;
  const id = config?.configurable?.checkpoint_id;
  const parent = parentConfig?.configurable?.checkpoint_id;
  if (id === undefined) return undefined;
  return {
    id,
    ...(parent === undefined ? {} : { parent_id: parent }),
    ...(metadata?.step === undefined ? {} : { step: metadata.step }),
    ...(metadata?.source === undefined ? {} : { source: metadata.source }),
  };
};
