import { isDeepStrictEqual } from "node:util";
import {
  contract,
  isValid,
  operations,
  type Content,
  type Described,
  type OpenApi,
  type Schema,
} from "./contract.ts";
import { samplesOf } from "./samples.ts";

/** Every difference between the contract and another description of an API, one line each. */

const resolve = (schema: Schema, document: OpenApi): Schema =>
  schema.$ref === undefined
    ? schema
    : resolve(document.components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {}, document);

/** A schema with its alternatives, and the elements of lists. */
const branches = (schema: Schema, document: OpenApi): Schema[] => {
  const resolved = resolve(schema, document);
  const below = [...(resolved.anyOf ?? []), ...(resolved.oneOf ?? []), ...(resolved.allOf ?? [])];
  if (resolved.items !== undefined) below.push(resolved.items);
  return [resolved, ...below.flatMap((branch) => branches(branch, document))];
};

const jsonOf = (content: Content | undefined): Schema => content?.content?.["application/json"]?.schema ?? {};

const fieldsOf = (content: Content | undefined, document: OpenApi): string[] => [
  ...new Set(branches(jsonOf(content), document).flatMap(({ properties }) => Object.keys(properties ?? {}))),
];
const requiredOf = (content: Content | undefined, document: OpenApi): string[] => {
  const { oneOf, anyOf } = resolve(jsonOf(content), document);
  // In alternatives no single field is required.
  if (oneOf !== undefined || anyOf !== undefined) return [];
  return branches(jsonOf(content), document).flatMap(({ required }) => required ?? []);
};

/** Path parameters are left out: their names don't matter. Headers have no case. */
const parametersOf = ({ parameters }: Described, isRequired?: true): string[] =>
  (parameters ?? [])
    .filter(
      (parameter) => parameter.in !== "path" && (parameter.required === true || isRequired === undefined),
    )
    .map(({ in: place, name }) => `${place} ${place === "header" ? name.toLowerCase() : name}`);
const successOf = ({ responses }: Described): Content | undefined => responses["200"];

const missing = (expected: readonly string[], actual: readonly string[]): string[] =>
  [...new Set(expected)].filter((item) => !actual.includes(item));

/** A path without the names of its parameters, and without a trailing slash. */
const shapeOf = (path: string): string => path.replace(/\{[^}]+\}/g, "{}").replace(/(.)\/$/, "$1");

/** An answer that the contract leaves open can't differ. */
const answerFields = (theirs: Described, ours: Described, document: OpenApi): [string[], string[]] => {
  const expected = fieldsOf(successOf(theirs), contract);
  return [expected, expected.length === 0 ? [] : fieldsOf(successOf(ours), document)];
};

/** The schemas of a body's field in the alternatives of the body. */
const schemasOf = (content: Content | undefined, field: string, document: OpenApi): Schema[] =>
  branches(jsonOf(content), document).flatMap(({ properties }) => properties?.[field] ?? []);

/** The fields of an operation's body, each with its schemas. */
export const bodyFieldsOf = ({ requestBody }: Described, document: OpenApi): Record<string, Schema[]> =>
  Object.fromEntries(
    fieldsOf(requestBody, document).map((field) => [field, schemasOf(requestBody, field, document)]),
  );

/** Values that the contract allows for a common field, and that this server refuses. */
const refusedValues = (theirs: Described, ours: Described, document: OpenApi): string[] => {
  const shared = fieldsOf(ours.requestBody, document);
  return fieldsOf(theirs.requestBody, contract)
    .filter((field) => shared.includes(field))
    .flatMap((field) => {
      const mine = schemasOf(ours.requestBody, field, document);
      const samples = schemasOf(theirs.requestBody, field, contract).flatMap((schema) =>
        samplesOf(schema, contract),
      );
      return samples
        .filter((sample, index) => samples.findIndex((other) => isDeepStrictEqual(other, sample)) === index)
        .filter((sample) => !mine.some((schema) => isValid(schema, sample, document)))
        .map((sample) => `refuses ${JSON.stringify(sample)} for body field ${field}`);
    });
};

const differencesOfOperation = (theirs: Described, ours: Described, document: OpenApi): string[] => {
  const compared: [string, string[], string[]][] = [
    ["parameter", parametersOf(theirs), parametersOf(ours)],
    ["required parameter", parametersOf(theirs, true), parametersOf(ours, true)],
    ["body field", fieldsOf(theirs.requestBody, contract), fieldsOf(ours.requestBody, document)],
    ["required body field", requiredOf(theirs.requestBody, contract), requiredOf(ours.requestBody, document)],
    ["status", Object.keys(theirs.responses), Object.keys(ours.responses)],
    ["answer field", ...answerFields(theirs, ours, document)],
  ];
  return compared
    .flatMap(([what, expected, actual]) => [
      ...missing(expected, actual).map((item) => `without ${what} ${item}`),
      ...missing(actual, expected).map((item) => `with ${what} ${item}`),
    ])
    .concat(refusedValues(theirs, ours, document));
};

/** `POST /threads: with body field x`: an addition of the document to the contract; `without` marks a missing part. */
export const differencesFromContract = (document: OpenApi): string[] => {
  const ours = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ path, method, described })),
  );
  const keyOf = ({ method, path }: { method: string; path: string }): string => `${method} ${shapeOf(path)}`;
  const found = operations.flatMap((operation) => {
    const same = ours.find((candidate) => keyOf(candidate) === keyOf(operation));
    return same === undefined
      ? [`${operation.name}: is not there`]
      : differencesOfOperation(operation.described, same.described, document).map(
          (difference) => `${operation.name}: ${difference}`,
        );
  });
  const more = ours
    .filter((candidate) => !operations.some((operation) => keyOf(operation) === keyOf(candidate)))
    .map(({ method, path }) => `${method.toUpperCase()} ${path}: is not in the contract`);
  return [...found, ...more];
};
