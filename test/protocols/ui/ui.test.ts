import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";

const CONFIG = fileURLToPath(new URL("./langgraph.json", import.meta.url));
const KEY = "a-key";

describe("components of a generative user interface", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ graphConfigFile: CONFIG, apiKeys: [KEY] });
  });
  afterAll(() => server.close());

  const ask = (assistant: string, name: string, headers: Record<string, string> = {}) =>
    server.client
      .post(`/ui/${encodeURIComponent(assistant)}`)
      .set({ "x-api-key": KEY, accept: "text/html", ...headers })
      .send({ name });
  const addressesIn = (html: string): string[] =>
    [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address ?? "");

  it("are HTML that loads styles and a script, which render one of them", async () => {
    const { status, headers, text } = await ask("two-step", "card");
    expect([status, headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
    const [styles, script] = addressesIn(text);
    expect(styles).toMatch(new RegExp(`^${server.url}/ui/two-step/ui-[0-9a-f]{16}\\.css$`));
    expect(script).toMatch(new RegExp(`^${server.url}/ui/two-step/ui-[0-9a-f]{16}\\.js$`));
    expect(text).toMatch(
      /onload="__LGUI_two_step_\w+\.render\(&quot;card&quot;, &quot;\{\{shadowRootId\}\}&quot;\)"/,
    );
  });

  it("escape their name", async () => {
    const { text } = await ask("two-step", `it's "plain" & </simple>`);
    expect(text).toContain("&quot;it&#39;s \\&quot;plain\\&quot; &amp; &lt;/simple&gt;&quot;");
  });

  it("are loaded without a key, by every page, and cached forever", async () => {
    const addresses = addressesIn((await ask("two-step", "card")).text);
    const answers = await Promise.all(
      addresses.map((address) => fetch(address, { headers: { origin: "https://app.example" } })),
    );
    expect(answers.map(({ status, headers }) => [status, headers.get("content-type")])).toEqual([
      [200, "text/css; charset=utf-8"],
      [200, "text/javascript; charset=utf-8"],
    ]);
    for (const { headers } of answers) {
      expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(headers.get("access-control-allow-origin")).toBe("*");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    }
    const [styles, script] = await Promise.all(answers.map((answer) => answer.text()));
    expect(styles).toContain("--card-colour");
    // React comes from the page.
    expect(script).toContain('("react/jsx-runtime")');
    expect(script).not.toContain("__SECRET_INTERNALS");
    expect(script).not.toContain(fileURLToPath(new URL("../../", import.meta.url)));
  });

  it("that can't be bundled are not bundled again for callers without a key, and write no log line for them", async () => {
    const faults = () => server.lines.filter((line) => line.includes('"level":50')).length;
    await eventually("the fault in the log", () => faults() > 0);
    const before = faults();
    for (let count = 0; count < 3; count += 1) {
      expect((await server.client.get("/ui/broken/ui-0123456789abcdef.js")).status).toBe(404);
    }
    expect(faults()).toBe(before);
  });

  it("require a key", async () => {
    expect((await server.client.post("/ui/two-step").send({ name: "card" })).status).toBe(401);
  });

  it.each([
    ["tokens", "card", "'tokens' has no component 'card'"],
    ["no-such-graph", "card", "Assistant 'no-such-graph' not found."],
    ["constructor", "card", "Assistant 'constructor' not found."],
  ])("cause a 404 if there are none: %s, %s", async (assistant, name, detail) => {
    const { status, body } = await ask(assistant, name);
    expect(status).toBe(404);
    expect((body as { detail: string }).detail).toContain(detail);
  });

  it.each([
    "/ui/two-step/ui.tsx",
    "/ui/two-step/..%2F..%2Flanggraph.json",
    "/ui/..%2F..%2Fetc/passwd",
    "/ui/two-step/constructor",
    "/ui/no-such-name/ui-0123456789abcdef.js",
  ])("serve only bundled files: %s", async (path) => {
    const { status } = await server.client.get(path);
    expect(status).toBe(404);
  });

  it("may have names of their own", async () => {
    const { status, text } = await ask("a name/of its own", "any");
    expect(status).toBe(200);
    const [script = ""] = addressesIn(text);
    expect(script).toContain("/ui/a%20name%2Fof%20its%20own/ui-");
    expect((await fetch(script)).status).toBe(200);
  });

  it("are loaded from the address by which a proxy is called", async () => {
    const there = async (headers: Record<string, string>) =>
      addressesIn((await ask("two-step", "card", headers)).text)[0]?.replace(/ui-.*/, "");
    const proxied = {
      "x-forwarded-host": "api.example",
      "x-forwarded-proto": "https",
      "x-forwarded-prefix": "/v1",
    };
    expect(await there(proxied)).toBe("https://api.example/v1/ui/two-step/");
    expect(await there({ host: "api.example:8000" })).toBe("//api.example:8000/ui/two-step/");
    expect(await there({ "x-forwarded-host": 'a"><script>', "x-forwarded-prefix": "//evil" })).toBe(
      `${server.url}/ui/two-step/`,
    );
  });

  it("that can't be bundled are reported in the log at the start, with the file, and not to the caller", async () => {
    const logged = await eventually("the fault in the log", () =>
      server.lines.find((line) => line.includes("components could not be bundled")),
    );
    expect(JSON.parse(logged ?? "{}")).toMatchObject({
      ui: "broken",
      file: expect.stringMatching(/test\/protocols\/ui\/broken\/ui\.jsx$/),
      text: expect.stringContaining("ui.jsx:1:25: Could not resolve"),
    });
    expect(logged).not.toMatch(/"stack"|\\n +at /);
    const { status, body } = await ask("broken", "nothing");
    expect(status).toBe(500);
    expect(JSON.stringify(body)).not.toContain("ui.jsx");
  });
});

describe("a server whose langgraph.json names no components", () => {
  it("has none, of any assistant", async () => {
    const server = await startTestServer();
    const answer = await server.client.post("/ui/two-step").send({ name: "card" });
    expect([answer.status, answer.body]).toEqual([
      404,
      { detail: "'two-step' has no component 'card' in 'ui' of langgraph.json." },
    ]);
    await server.close();
  });
});
