import { z } from "zod";
import { list, wholeNumber, type Options } from "./option.ts";

/** Characters. Shorter secrets can be guessed. */
const SECRET_LENGTH_AT_LEAST = 16;

export const WEBHOOK_OPTIONS = {
  webhookSecrets: {
    environment: ["WEBHOOK_SECRETS"],
    default: "",
    secret: true,
    expected: `a list of secrets separated by commas, each of at least ${SECRET_LENGTH_AT_LEAST} characters`,
    schema: z
      .string()
      .transform(list)
      .pipe(z.array(z.string().min(SECRET_LENGTH_AT_LEAST)).max(10)),
    description:
      "Secrets that sign webhooks as in Standard Webhooks (whsec_ and base64, or any text), separated by commas. Each " +
      "signs. Not set: no signature.",
  },
  webhookRetentionSeconds: {
    environment: ["WEBHOOK_RETENTION_SECONDS"],
    default: "604800",
    ...wholeNumber(0, 31_536_000),
    description: "Seconds for which a finished delivery can be shown and replayed.",
  },
} satisfies Options;
