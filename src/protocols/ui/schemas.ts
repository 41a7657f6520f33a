import { z } from "zod";
import { storableText } from "../../platform/domain/json-schemas.ts";

export const uiPath = z.object({ assistant_id: z.string().min(1) });
export const uiFilePath = z.object({ assistant_id: z.string().min(1), file: z.string().min(1) });

export const uiBody = z.object({ name: storableText.min(1).max(1_000).describe("The name of a component.") });
