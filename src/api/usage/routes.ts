import { z } from "zod";
import { callerGone } from "../../http/caller-gone.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import { errorAnswer } from "../../platform/domain/json-schemas.ts";
import { usageAnswer, usageQuery, type UsageQuery, type UsageRow } from "./schemas.ts";
import type { UsageService } from "./service.ts";

const SUMS = [
  "runs",
  "calls",
  "input_tokens",
  "output_tokens",
  "cache_read_tokens",
  "cache_creation_tokens",
  "reasoning_tokens",
  "cost",
] as const;

/** RFC 4180. A leading quote keeps spreadsheets from reading a name as a formula. */
const cell = (value: unknown): string => {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = String(value);
  const plain = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
};

const csvOf = ({ group_by: groups }: UsageQuery, rows: readonly UsageRow[]): string => {
  const columns = [...groups, ...SUMS];
  const lines = rows.map((row) => columns.map((column) => cell(row[column])).join(","));
  return [columns.join(","), ...lines, ""].join("\r\n");
};

export const createUsageRoutes =
  (service: UsageService): RoutePlugin =>
  async (app) => {
    app.get(
      "/usage",
      {
        schema: {
          tags: ["Usage"],
          summary: "Sum the tokens and the cost of models",
          description:
            "By day, graph, assistant, caller, model or thread. Runs count by the time of their calls. Deleted runs count, too. " +
            "A user who may not see all threads sees the usage of the runs that the user created.",
          querystring: usageQuery,
          response: {
            200: z.union([usageAnswer, z.string().describe("CSV")]),
            404: errorAnswer,
            422: errorAnswer,
          },
        },
      },
      async ({ caller, query }, reply) => {
        const answer = await service.sums(caller, query, callerGone(reply.raw));
        if (query.format === "json") return answer;
        return await reply.type("text/csv; charset=utf-8").send(csvOf(query, answer.rows));
      },
    );
  };
