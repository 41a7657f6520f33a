import { errorAnswer } from "../../platform/domain/json-schemas.ts";

/** What the descriptions of all routes of assistants share. */
export const tags = ["Assistants"];
export const notFound = { 404: errorAnswer };
export const invalid = { 422: errorAnswer };
