interface CheckpointEnvelope {
  id: string;
  parent_id?: string;
  step?: number;
  source?: string;
}

interface Configured {
  configurable?: { checkpoint_id?: string };
}

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
