import { describe, expect, test } from "vitest";
import type { Locator } from "playwright-core";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { onConsole } from "./on-console.ts";

const SCHEMA = {
  type: "object",
  required: ["name", "mode"],
  properties: {
    name: { type: "string", title: "Who", description: "Who answers" },
    mode: { enum: ["quick", "deep", 3] },
    temperature: { type: "number", default: 0.7, minimum: 0, maximum: 2 },
    steps: { type: "integer" },
    fast: { type: "boolean", default: true },
    nick: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
    size: { type: ["integer", "string"] },
    tools: { type: "array", items: { enum: ["search", "count"] }, default: ["search"] },
    stops: { type: "array", items: { type: "string" } },
    place: { $ref: "#/$defs/point" },
    labels: { type: "object", additionalProperties: { type: "string" } },
    people: {
      type: "array",
      items: { type: "object", required: ["first"], properties: { first: { type: "string" } } },
    },
    shape: {
      oneOf: [
        {
          title: "Circle",
          type: "object",
          required: ["kind"],
          properties: { kind: { const: "circle" }, radius: { type: "number" } },
        },
        {
          title: "Box",
          type: "object",
          required: ["kind"],
          properties: { kind: { const: "box" }, width: { type: "number" } },
        },
      ],
    },
    anything: {},
    tree: { $ref: "#/$defs/tree" },
    messages: { type: "array", langgraph_type: "messages", title: "Messages" },
  },
  $defs: {
    point: { type: "object", properties: { x: { type: "number" } } },
    tree: {
      type: "object",
      properties: { leaf: { type: "string" }, below: { type: "array", items: { $ref: "#/$defs/tree" } } },
    },
  },
};

/** Schemas that a form can follow only in part. */
const HOSTILE: Record<string, unknown> = {
  "one that is itself": { $ref: "#" },
  "one that is no schema": "a text",
  "one whose words are none": { type: 7, properties: "none", title: {}, required: "x" },
  "one with inherited names": {
    type: "object",
    properties: { constructor: { type: "string" }, toString: { type: "number" } },
  },
  "one whose reference leads nowhere": { $ref: "#/$defs/%E0%A4%A" },
  "one whose pattern is none": { type: "object", properties: { a: { type: "string", pattern: "(" } } },
  "one with a thousand fields": {
    type: "object",
    properties: Object.fromEntries(
      Array.from({ length: 1_000 }, (_, index) => [`f${index}`, { type: "string" }]),
    ),
  },
  "one that is deep": Array.from({ length: 50 }).reduce<unknown>(
    (inner) => ({ type: "object", required: ["down"], properties: { down: inner } }),
    { type: "string" },
  ),
  "one that unfolds without end": {
    $ref: "#/$defs/a",
    $defs: {
      a: {
        type: "object",
        properties: Object.fromEntries(["b", "c", "d"].map((name) => [name, { $ref: `#/$defs/${name}` }])),
      },
      b: { type: "object", properties: { c: { $ref: "#/$defs/c" }, d: { $ref: "#/$defs/d" } } },
      c: { type: "object", properties: { b: { $ref: "#/$defs/b" }, d: { $ref: "#/$defs/d" } } },
      d: { type: "object", properties: { b: { $ref: "#/$defs/b" }, c: { $ref: "#/$defs/c" } } },
    },
  },
};

describe.skipIf(reasonForNoBrowser() !== undefined)("a form of a JSON schema", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  let schema: unknown = SCHEMA;
  const dialog = (): Locator => shown.page.getByRole("dialog", { name: "New assistant" });
  const group = (name: string): Locator => dialog().getByRole("group", { name, exact: true });
  const open = async (next: unknown): Promise<void> => {
    schema = next;
    await shown.go("/assistants");
    await shown.page.reload();
    await shown.page.getByRole("button", { name: "New assistant" }).click();
    await dialog().getByRole("tab", { name: "Form" }).waitFor();
    await dialog().getByText("Loading…").waitFor({ state: "detached" });
  };
  /** The JSON tab, which contains the request's value. */
  const json = async (): Promise<unknown> => {
    await dialog().getByRole("tab", { name: "JSON" }).click();
    const written = await dialog().getByLabel("Context (JSON)").inputValue();
    await dialog().getByRole("tab", { name: "Form" }).click();
    return JSON.parse(written);
  };

  onConsole({}, async (opened) => {
    shown = opened;
    await shown.page.route("**/schemas", (route) =>
      route.fulfill({ json: { graph_id: "agent", context_schema: schema, config_schema: schema } }),
    );
    await shown.page.getByRole("navigation").waitFor();
  });

  test("says while the server is reading the types of the graph, and then shows them", async () => {
    const { page } = shown;
    let isRead = false;
    await page.route("**/schemas", (route) => {
      const fields = (properties: object) => ({ context_schema: { type: "object", properties } });
      const provisional = { ...fields({ tone: {} }), provisional: true };
      return route.fulfill({ json: isRead ? fields({ tone: { enum: ["calm", "loud"] } }) : provisional });
    });
    await shown.go("/assistants");
    await page.reload();
    await page.getByRole("button", { name: "New assistant" }).click();
    const notice = dialog().getByText("Reading the types of this graph…");
    await notice.waitFor();
    await dialog().getByLabel("tone (JSON)").waitFor();
    isRead = true;
    await notice.waitFor({ state: "detached" });
    await dialog().getByLabel("tone").selectOption("loud");
    await page.unroute("**/schemas");
    await page.route("**/schemas", (route) =>
      route.fulfill({ json: { graph_id: "agent", context_schema: schema, config_schema: schema } }),
    );
  });

  test("shows every field with its description, and prefills nothing, not even defaults", async () => {
    await open(SCHEMA);
    await dialog().getByLabel("Who (required)").waitFor();
    await dialog().getByText("Who answers").waitFor();
    await dialog().getByText("Default: 0.7").waitFor();
    expect(await shown.violations()).toEqual([]);
    expect(await json()).toEqual({});
  });

  test("edits texts, numbers, choices, lists, objects, keys, alternatives and free values", async () => {
    await open(SCHEMA);
    const form = dialog();
    await form.getByLabel("Who (required)").fill("Ada");
    await form.getByLabel("mode (required)").selectOption("3");
    await form.getByLabel("temperature").fill("0.25");
    await form.getByLabel("steps").fill("4");
    await form.getByLabel("fast").selectOption("No");
    await form.getByLabel("nick").selectOption("Nothing (null)");
    await form.getByLabel("size", { exact: true }).selectOption("Text");
    await form.getByLabel("Text", { exact: true }).fill("large");
    await group("tools").getByLabel("count").check();
    await group("stops").getByRole("button", { name: "Add", exact: true }).click();
    await group("stops").getByRole("button", { name: "Add an item" }).click();
    await group("stops").getByRole("button", { name: "Add an item" }).click();
    await group("stops").getByRole("textbox").first().fill("STOP");
    await group("stops").getByRole("button", { name: "Move down" }).first().click();
    await group("place").getByRole("button", { name: "Add", exact: true }).click();
    await group("place").getByLabel("x").fill("-1.5");
    await group("labels").getByRole("button", { name: "Add", exact: true }).click();
    await group("labels").getByRole("button", { name: "Add a key" }).click();
    await group("labels").getByRole("textbox").last().fill("blue");
    await group("labels").getByLabel("Key", { exact: true }).fill("colour");
    await group("labels").getByLabel("Key", { exact: true }).blur();
    await group("people").getByRole("button", { name: "Add", exact: true }).click();
    await group("people").getByRole("button", { name: "Add an item" }).click();
    await group("people").getByLabel("first (required)").fill("Grace");
    await group("Circle").getByRole("button", { name: "Add", exact: true }).click();
    await form.getByLabel("shape").selectOption("Box");
    await group("Box").getByLabel("width").fill("3");
    await form.getByLabel("anything (JSON)").fill('[1, {"two": null}]');
    await group("tree").getByRole("button", { name: "Add", exact: true }).click();
    await group("tree").getByLabel("below (JSON)").fill('[{"leaf": "inner"}]');
    await group("tree").getByText("it may contain itself").waitFor();
    await group("Messages").getByRole("button", { name: "Add a message" }).click();
    await group("Message 1").getByLabel("Role").selectOption("system");
    await group("Message 1").getByLabel("Text").fill("Be short.");
    expect(await shown.violations()).toEqual([]);
    expect(await json()).toEqual({
      ...{ name: "Ada", mode: 3, temperature: 0.25, steps: 4, fast: false, nick: null, size: "large" },
      ...{ tools: ["count"], stops: ["", "STOP"], place: { x: -1.5 }, labels: { colour: "blue" } },
      ...{ people: [{ first: "Grace" }], shape: { kind: "box", width: 3 }, anything: [1, { two: null }] },
      ...{ tree: { below: [{ leaf: "inner" }] }, messages: [{ role: "system", content: "Be short." }] },
    });
    // Back from JSON, the form shows the input; emptied fields are not sent.
    expect(await dialog().getByLabel("nick").inputValue()).toBe("1");
    await form.getByLabel("temperature").fill("");
    await group("tools").getByRole("button", { name: "Leave out" }).click();
    await group("Message 1").getByRole("button", { name: "Remove message 1" }).click();
    const left = (await json()) as object;
    for (const gone of ["temperature", "tools", "messages"]) expect(left).not.toHaveProperty(gone);
  });

  test("shows errors beside the field, and on the JSON tab", async () => {
    await open(SCHEMA);
    await dialog().getByLabel("steps").fill("many");
    await dialog().getByText("This must be a whole number.").waitFor();
    await dialog().getByText("This is required.").first().waitFor();
    await dialog().getByRole("tab", { name: "JSON" }).click();
    await dialog().getByText("steps: must be a whole number.").waitFor();
    expect(await shown.violations()).toEqual([]);
    await dialog().getByLabel("Context (JSON)").fill("{");
    await dialog().getByRole("button", { name: "Create assistant", disabled: true }).waitFor();
    await dialog().getByLabel("Context (JSON)").fill('{"name": "Ada", "mode": "quick"}');
    await dialog().getByText("The value does not match its schema").waitFor({ state: "detached" });
    await dialog().getByRole("button", { name: "Create assistant", disabled: false }).waitFor();
  });

  test("drops invalid JSON with the field, or the tab, in which it was typed", async () => {
    await open(SCHEMA);
    const create = (disabled: boolean): Promise<void> =>
      dialog().getByRole("button", { name: "Create assistant", disabled }).waitFor();
    await dialog().getByRole("tab", { name: "JSON" }).click();
    await dialog().getByLabel("Context (JSON)").fill("{");
    await create(true);
    await dialog().getByRole("tab", { name: "Form" }).click();
    await create(false);
    await group("tree").getByRole("button", { name: "Add", exact: true }).click();
    await group("tree").getByLabel("below (JSON)").fill("[");
    await create(true);
    await group("tree").getByRole("button", { name: "Leave out" }).click();
    await create(false);
    await dialog().getByLabel("anything (JSON)").fill("[");
    await create(true);
    await dialog().getByRole("tab", { name: "JSON" }).click();
    await create(false);
  });

  test("keeps a value with another shape than its schema, to be edited as JSON", async () => {
    await open(SCHEMA);
    const value = { name: ["not", "a", "text"], unknown: 1 };
    await dialog().getByRole("tab", { name: "JSON" }).click();
    await dialog().getByLabel("Context (JSON)").fill(JSON.stringify(value));
    await dialog().getByRole("tab", { name: "Form" }).click();
    await dialog().getByText("No form is available: it does not match its schema.").waitFor();
    expect(await json()).toEqual(value);
    await dialog().getByRole("tab", { name: "JSON" }).click();
    await dialog().getByLabel("Context (JSON)").fill('{"name": "Ada", "unknown": 1}');
    await dialog().getByRole("tab", { name: "Form" }).click();
    await dialog().getByText("Only editable as JSON: unknown.").waitFor();
    await dialog().getByLabel("Who (required)").fill("Grace");
    expect(await json()).toEqual({ name: "Grace", unknown: 1 });
  });

  test("lets a value be edited with any schema", async () => {
    await open({});
    const graphs = await dialog().getByLabel("Graph").locator("option").allTextContents();
    for (const [index, [name, hostile]] of Object.entries(HOSTILE).entries()) {
      schema = hostile;
      // Each graph's schema is requested once, so each test has another graph; the first had none.
      await dialog()
        .getByLabel("Graph")
        .selectOption(graphs[index + 1] ?? "");
      await dialog().getByRole("tab", { name: "JSON" }).click();
      await dialog().getByLabel("Context (JSON)").fill('{"constructor": "c", "a": "b"}');
      await dialog().getByRole("tab", { name: "Form" }).click();
      await dialog().getByRole("tabpanel").getByRole("textbox").first().waitFor();
      expect({ name, value: await json() }).toEqual({ name, value: { constructor: "c", a: "b" } });
      await dialog().getByRole("button", { name: "Create assistant", disabled: false }).waitFor();
    }
    expect(graphs.length).toBeGreaterThan(Object.keys(HOSTILE).length);
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of the content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});
