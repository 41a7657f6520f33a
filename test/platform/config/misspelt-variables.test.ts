import { expect, test } from "vitest";
import { misspeltVariables } from "../../../src/platform/config/misspelt-variables.ts";

test.each([
  [{ MAX_ATTEMTPS: "1" }, "MAX_ATTEMTPS (did you mean MAX_ATTEMPTS?)"],
  [{ API_KEY: "secret" }, "API_KEY (did you mean API_KEYS?)"],
  [{ DATABSE_URL: "secret" }, "DATABSE_URL (did you mean DATABASE_URL?)"],
  [{ LANGRAPH_AUTH: "{}" }, "LANGRAPH_AUTH (did you mean LANGGRAPH_AUTH?)"],
])("a misspelt variable is reported with the similar name, and not with its value: %j", (given, reported) => {
  expect(misspeltVariables(given)).toBe(`variables that this server does not know: ${reported}`);
});

test.each([
  ["set as it should be", { MAX_ATTEMPTS: "1", DATABASE_URL: "x", LOG_LEVEL: "info" }],
  [
    "another's",
    { OPENAI_API_KEY: "x", REDIS_URL: "x", HOME: "/", PATH: "/", SORT: "x", LANG: "C", MAX_RETRIES: "3" },
  ],
  ["near one whose option is set", { DATABASE_URL: "x", POSTGRES_URL: "y", API_KEYS: "x", API_KEY: "y" }],
  ["an object's own", { constructor: "x", hasOwnProperty: "y" }],
])("a variable that is %s is not reported", (_what, given) => {
  expect(misspeltVariables(given as Record<string, string>)).toBeUndefined();
});

test("of thousands of variables only few are compared, and five reported", () => {
  const near = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`MAX_ATTEMPT${index}`, "1"]));
  expect(misspeltVariables(near)?.match(/did you mean/g)).toHaveLength(5);
  const others = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`OTHER_${index}`, "1"]));
  expect(misspeltVariables({ ...others, ...near })).toBeUndefined();
});
