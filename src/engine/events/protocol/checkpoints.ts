/** A checkpoint in the protocol. LangGraph streams it before the `values` of the step. */
export interface CheckpointEnvelope {
  id: string;
  parent_id?: string;
  step?: number;
  source?: string;
}

interface Configured {
  configurable?: { checkpoint_id?: string };
}

/** A chunk of LangGraph's mode `checkpoints`. */
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

/** LangGraph streams whole checkpoints instead of envelopes if the mode `checkpoints` is requested. */
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
