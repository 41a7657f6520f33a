import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { snippetsOf } from "../../console/src/parts/request-snippets/snippets.ts";

const OPEN = { apiUrl: "http://127.0.0.1:8123", key: undefined };
const WITH_KEY = { ...OPEN, key: { header: "X-Api-Key", prefix: "" } };
const THREAD = "01a21b10-7b9d-7ea5-ab88-eca09ff19267";
const HOSTILE = JSON.parse(
  `{"__proto__": {"a": 1}, "constructor": "it's $HOME \`id\` $(id) \\"quoted\\" \\\\ %s !! \\u0000 \\ud83d\\ude00 \\n END", "on": [true, null, []]}`,
) as object;
const RUN = {
  method: "POST",
  path: `/threads/${THREAD}/runs`,
  body: { assistant_id: "agent", input: HOSTILE, multitask_strategy: "enqueue" },
} as const;

describe("a request as a text for other programs", () => {
  test("as a command line, its body arrives as it is, and nothing of it is executed", () => {
    const text = snippetsOf(RUN, OPEN).curl.replace(/^curl/, "show");
    const given = execFileSync("sh", ["-c", `show() { for last; do :; done; printf %s "$last"; }\n${text}`], {
      encoding: "utf8",
    });
    expect(JSON.parse(given)).toEqual(RUN.body);
  });

  test("a body that is too long for an argument is read from a document", () => {
    const body = { text: "x'$HOME".repeat(20_000) };
    const text = snippetsOf({ method: "POST", path: "/store/items", body }, OPEN).curl.replace(
      /^curl/,
      "show",
    );
    const given = execFileSync("sh", [], { input: `show() { cat; }\n${text}\n`, encoding: "utf8" });
    expect(JSON.parse(given)).toEqual(body);
  });

  test("in JavaScript, the values are the same, and __proto__ stays a field", () => {
    const text = snippetsOf({ method: "POST", path: "/runs/search", body: HOSTILE }, OPEN).javascript;
    const value = /JSON\.stringify\(([^]*)\),\n\}\);\nconsole/.exec(text)?.[1];
    expect(JSON.stringify(new Function(`return ${value}`)())).toBe(JSON.stringify(HOSTILE));
  });

  test("uses the official clients where they have the method, with their names of fields", () => {
    const { javascript, python } = snippetsOf(RUN, OPEN);
    expect(javascript).toContain(`client.runs.create("${THREAD}", "agent", {`);
    expect(javascript).toContain(`multitaskStrategy: "enqueue"`);
    expect(python).toContain(`client.runs.create(`);
    expect(python).toContain(`multitask_strategy="enqueue"`);
    expect(python).toContain("True");
    expect(python).toContain("None");
  });

  test("sends a field that the clients would drop without them", () => {
    const { javascript, python } = snippetsOf({ ...RUN, body: { ...RUN.body, strict_resume: true } }, OPEN);
    expect(javascript).toContain("await fetch(");
    expect(python).toContain("httpx.request(");
  });

  test("names a variable in place of the key, and no key where none is wanted", () => {
    expect(snippetsOf(RUN, WITH_KEY).curl).toContain(`-H "X-Api-Key: $API_KEY"`);
    expect(snippetsOf(RUN, WITH_KEY).javascript).toContain(`"X-Api-Key": process.env.API_KEY`);
    expect(snippetsOf(RUN, WITH_KEY).python).toContain(`{"X-Api-Key": os.environ["API_KEY"]}`);
    const bearer = { ...OPEN, key: { header: "Authorization", prefix: "Bearer " } };
    expect(snippetsOf(RUN, bearer).curl).toContain(`-H "Authorization: Bearer $API_KEY"`);
    expect(snippetsOf(RUN, bearer).javascript).toContain("`Bearer ${process.env.API_KEY}`");
    expect(Object.values(snippetsOf(RUN, OPEN)).join()).not.toContain("API_KEY");
  });

  test("protects brackets in addresses, which curl would read as lists", () => {
    expect(snippetsOf({ method: "GET", path: "/store?a=[1-9]{b}" }, OPEN).curl).toBe(
      "curl 'http://127.0.0.1:8123/store?a=%5B1-9%5D%7Bb%7D'",
    );
  });
});
