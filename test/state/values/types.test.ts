import { HumanMessage } from "@langchain/core/messages";
import { PromptTemplate } from "@langchain/core/prompts";
import { Command, Overwrite, Send } from "@langchain/langgraph";
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { describe, expect, test } from "vitest";
import { classesBesideThis } from "../../../src/state/values/classes.ts";
import { equalsTree } from "../../../src/state/values/comparing.ts";
import { encode, treeText } from "../../../src/state/values/encoding.ts";
import { reviveFully } from "../revive-fully.ts";
import {
  OBJECT_TYPES,
  SCALAR_TYPES,
  typeNamed,
  typeOfObject,
  typeOfScalar,
} from "../../../src/state/values/types/table.ts";
import { toWireJson } from "../../../src/state/values/wire-json.ts";

/** For each type of the table: a value, one that differs minimally, and the first in the form of clients. */
const EXAMPLES: ReadonlyArray<[value: unknown, other: unknown, wire: string]> = [
  [Number.NaN, -0, "null"],
  [12n, 13n, '"12"'],
  [undefined, null, "null"],
  [
    new HumanMessage({ content: "hi", id: "1" }),
    new HumanMessage({ content: "hi", id: "2" }),
    '{"type":"human","content":"hi","id":"1","additional_kwargs":{},"response_metadata":{}}',
  ],
  [new Date(0), new Date(1), '"1970-01-01T00:00:00.000Z"'],
  [new Map([["a", 1]]), new Map([["a", 2]]), '{"a":1}'],
  [new Set([1]), new Set(["1"]), "[1]"],
  [new Uint8Array([1, 2]), new Uint16Array([513]), '"AQI="'],
  [/a+/g, /a+/i, '"/a+/g"'],
  [new URL("http://a/b"), new URL("http://a/c"), '"http://a/b"'],
  [new RangeError("far"), new Error("far"), '{"name":"RangeError","message":"far"}'],
  [new Send("n", { a: 1 }), new Send("n", { a: 2 }), '{"lg_name":"Send","node":"n","args":{"a":1}}'],
  [new Command({ resume: 1 }), new Command({ resume: 2 }), '{"lg_name":"Command","resume":1,"goto":[]}'],
  [new Overwrite([1]), new Overwrite([2]), '{"__overwrite__":[1]}'],
  [new DeltaSnapshot([1]), new DeltaSnapshot([2]), '{"lg_name":"DeltaSnapshot","value":[1]}'],
  [
    new PromptTemplate({ inputVariables: ["a"], template: "{a}", templateFormat: "f-string" }),
    new PromptTemplate({ inputVariables: ["a"], template: "{a}!", templateFormat: "f-string" }),
    '{"lc":1,"type":"constructor","id":["langchain_core","prompts","prompt","PromptTemplate"],"kwargs":{"input_variables":["a"],"template":"{a}","template_format":"f-string"}}',
  ],
  [new WeakMap(), new WeakMap([[{}, 1]]), "{}"],
];
const typeOf = (value: unknown) =>
  typeof value === "object" && value !== null ? typeOfObject(value) : typeOfScalar(value);
const nameOf = (value: unknown): string =>
  typeof value === "object" && value !== null ? value.constructor.name : typeof value;

test("every type of the table has an example here, and no two types have the same name", () => {
  const types = [...SCALAR_TYPES, ...OBJECT_TYPES];
  expect(EXAMPLES.map(([value]) => typeOf(value))).toEqual(types);
  for (const type of types) for (const name of type.names) expect(typeNamed(name)).toBe(type);
});

describe.each(EXAMPLES.map(([value, other, wire]) => [nameOf(value), value, other, wire] as const))(
  "a value of type %s",
  (_, value, other, wire) => {
    const tree: unknown = JSON.parse(treeText(encode(value)));

    test.skipIf(value instanceof WeakMap)("is restored unchanged from its tree", async () => {
      const back = await reviveFully(tree, await classesBesideThis());
      expect(nameOf(back)).toBe(nameOf(value));
      expect(encode(back)).toEqual(tree);
    });

    test.skipIf(value instanceof WeakMap)(
      "has the same JSON and stored form when it is read only to be sent",
      async () => {
        const back = await reviveFully(tree);
        expect([toWireJson(back), encode(back)]).toEqual([wire, tree]);
      },
    );

    test("equals its own tree, and one that differs minimally does not", () => {
      expect(equalsTree(value, tree)).toBe(true);
      expect(equalsTree(other, tree)).toBe(value instanceof WeakMap);
    });

    test("is sent to clients in their form", () => {
      expect(toWireJson(value)).toBe(wire);
    });
  },
);
