import { z } from "zod";
import type { EncryptionSetup } from "../encryption/setup.ts";
import { parseKeys } from "../encryption/keys.ts";
import { commaSeparated, list, type Options, type ValuesOf } from "./option.ts";

/** Base64. */
const KEYS = {
  expected: "keys of 16, 24 or 32 bytes, or of 64 hexadecimal digits, separated by commas",
  schema: z.string().transform((text, context): readonly string[] => {
    const keys = text === "" ? [] : parseKeys(text);
    if (keys !== undefined) return keys.map((key) => key.toString("base64"));
    context.addIssue({ code: "custom", message: "no keys" });
    return z.NEVER;
  }),
  secret: true,
} as const;

/** The server searches by these keys, or the hosted service leaves them unencrypted. */
const ALWAYS_OPEN =
  /^(langgraph_.*|graph_id|assistant_id|thread_id|run_id|cron_id|checkpoint_id|task_id|created_by|source|step|parents|run_attempt|owner|tenant_id)$/;

export const ENCRYPTION_OPTIONS = {
  encryptionKeys: {
    environment: ["LANGGRAPH_AES_KEY"],
    default: "",
    ...KEYS,
    description:
      "Encrypts states, events, inputs, configurations and store items (AES-256-GCM). With several keys, separated by " +
      "commas, the first encrypts and all decrypt. Make one with: openssl rand -hex 32",
  },
  encryptionFallbackKeys: {
    environment: ["LANGGRAPH_AES_FALLBACK_KEYS"],
    default: "",
    ...KEYS,
    description: "More keys that only decrypt, separated by commas.",
  },
  encryptedMetadataKeys: {
    environment: ["LANGGRAPH_AES_JSON_KEYS"],
    default: "",
    ...commaSeparated,
    expected:
      "names of metadata, separated by commas, but none that the server needs, such as graph_id or langgraph_version",
    schema: z
      .string()
      .transform(list)
      .refine((names) => !names.some((name) => ALWAYS_OPEN.test(name))),
    description:
      "Metadata keys whose values are encrypted too, separated by commas. Searches can't use these values.",
  },
} satisfies Options;

export const encryptionOf = (config: ValuesOf<typeof ENCRYPTION_OPTIONS>): EncryptionSetup => ({
  keys: [...config.encryptionKeys, ...config.encryptionFallbackKeys],
  metadataKeys: config.encryptedMetadataKeys,
});
