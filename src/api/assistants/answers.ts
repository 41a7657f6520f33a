import { errorAnswer } from "../../platform/domain/json-schemas.ts";

export const tags = ["Assistants"];
export const notFound = { 404: errorAnswer };
export const invalid = { 422: errorAnswer };
