import type { JsonObject } from "../platform/lib/json.ts";
import type { Actions, Resource } from "./actions.ts";
import type { ValueOf } from "./values.ts";

/**
 * Builds SQL that is true for visible records. `metadata`: SQL of a record's metadata. `parameter`: adds a value and
 * returns its placeholder.
 */
export type Condition = (metadata: string, parameter: (value: unknown) => string) => string;

/** Wraps a condition; see `Visibility.condition`. */
export type Within = (condition: string) => string;

/** Encloses value numbers in the text; SQL never contains it. */
const MARK = "\u0000";
const NO_CONDITION = "true";

class GrantedVisibility<R extends Resource, Value> {
  readonly #condition: Condition | undefined;

  /** `value`: the requested value with the handler's changes. */
  constructor(
    readonly resource: R,
    readonly value: Value,
    condition: Condition | undefined,
    /** The user, for graphs built to read a state. */
    readonly user: JsonObject | undefined,
  ) {
    this.#condition = condition;
  }

  /** Without a condition, all records are visible. */
  get hidesNothing(): boolean {
    return this.#condition === undefined;
  }

  /**
   * The condition for a raw statement, in parentheses, or `true`. Appends its parameters to `values`.
   *
   * `within`: wraps the condition for metadata of another table (`exists (select … and ${condition})`). Not called if
   * everything is visible, so the statement skips that table.
   */
  condition(metadata: string, values: unknown[], within: Within = (condition) => condition): string {
    if (this.#condition === undefined) return NO_CONDITION;
    return `(${within(this.#condition(metadata, (value) => `$${values.push(value)}`))})`;
  }

  /**
   * The condition split at its values, for query builders that number parameters (where-visible.ts). Undefined if
   * everything is visible.
   */
  pieces(
    metadata: string,
    within: Within = (condition) => condition,
  ): { texts: string[]; values: unknown[] } | undefined {
    if (this.#condition === undefined) return undefined;
    const values: unknown[] = [];
    const place = (value: unknown): string => `${MARK}${values.push(value) - 1}${MARK}`;
    const parts = `(${within(this.#condition(metadata, place))})`.split(MARK);
    // Values in the order of the text, which may differ from the order of calls.
    const numbers = parts.filter((_part, index) => index % 2 === 1);
    return {
      texts: parts.filter((_part, index) => index % 2 === 0),
      values: numbers.map((number) => values[Number(number)]),
    };
  }
}

/**
 * The records that a caller may see and change. Only authorize.ts creates one: the class is not exported, the private
 * field prevents imitation, and test/access/authorize.test.ts checks the importers of `grantVisibility`.
 */
export type Visibility<R extends Resource = Resource, Value = unknown> = GrantedVisibility<R, Value>;

/** A visibility for one action. Store its `value` instead of the requested one. */
export type Permission<R extends Resource, A extends Actions[R]> = Visibility<R, ValueOf<R, A>>;

interface GrantVisibility {
  <R extends Resource>(resource: R, condition?: Condition): Visibility<R, undefined>;
  <R extends Resource, Value>(
    resource: R,
    condition: Condition | undefined,
    value: Value,
    user?: JsonObject,
  ): Visibility<R, Value>;
}

/** Only for authorize.ts. Without a condition everything is visible. */
export const grantVisibility: GrantVisibility = <R extends Resource, Value>(
  resource: R,
  condition?: Condition,
  value?: Value,
  user?: JsonObject,
): Visibility<R, Value> => new GrantedVisibility(resource, value as Value, condition, user);
