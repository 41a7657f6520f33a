import type { JsonObject } from "../platform/lib/json.ts";
import type { Actions, Resource } from "./actions.ts";
import type { ValueOf } from "./values.ts";

/**
 * SQL that is true for the records that somebody may see. `metadata` is SQL for the metadata of a record (a column, or
 * an expression); `parameter` takes a value and returns the placeholder that stands for it.
 */
export type Condition = (metadata: string, parameter: (value: unknown) => string) => string;

/** SQL for `metadata`, and what it has to stand in when there is a condition at all; see `Visibility.condition`. */
export type Within = (condition: string) => string;

/** Around the number of a value in the text of a condition. No statement holds it. */
const MARK = "\u0000";
const NO_CONDITION = "true";

class GrantedVisibility<R extends Resource, Value> {
  readonly #condition: Condition | undefined;

  /** `value`: what the caller wants to do, as it was granted: a handler may have changed what is stored of it. */
  constructor(
    readonly resource: R,
    readonly value: Value,
    condition: Condition | undefined,
    /** Who it was granted to, for graphs that are made to read a state; undefined: no user. */
    readonly user: JsonObject | undefined,
  ) {
    this.#condition = condition;
  }

  /** Whether nothing is hidden, so that nobody has to look. */
  get hidesNothing(): boolean {
    return this.#condition === undefined;
  }

  /**
   * The condition for a raw statement, in parentheses, or `true`. Its values are appended to `values`, which holds the
   * values of the parameters so far: the statement is sent with all of them.
   *
   * `within`: for a record whose metadata stand in another table, makes the condition on that table
   * (`exists (select … and ${condition})`). Not called where everything is visible, so that such a statement does not
   * look at the other table.
   */
  condition(metadata: string, values: unknown[], within: Within = (condition) => condition): string {
    if (this.#condition === undefined) return NO_CONDITION;
    return `(${within(this.#condition(metadata, (value) => `$${values.push(value)}`))})`;
  }

  /**
   * The same in pieces, between which the values stand: for a builder of queries, which numbers its parameters itself
   * (where-visible.ts). Undefined where everything is visible.
   */
  pieces(
    metadata: string,
    within: Within = (condition) => condition,
  ): { texts: string[]; values: unknown[] } | undefined {
    if (this.#condition === undefined) return undefined;
    const values: unknown[] = [];
    const place = (value: unknown): string => `${MARK}${values.push(value) - 1}${MARK}`;
    const parts = `(${within(this.#condition(metadata, place))})`.split(MARK);
    // In the order of the text, which need not be that in which they were taken.
    const numbers = parts.filter((_part, index) => index % 2 === 1);
    return {
      texts: parts.filter((_part, index) => index % 2 === 0),
      values: numbers.map((number) => values[Number(number)]),
    };
  }
}

/**
 * What of a resource's records a caller may see and change: the answer of `Authorize`, and what each method of a
 * repository asks for. Only authorize.ts makes one: the class is not exported, its private field can't be imitated, and
 * test/access/authorize.test.ts looks who imports `grantVisibility`.
 */
export type Visibility<R extends Resource = Resource, Value = unknown> = GrantedVisibility<R, Value>;

/**
 * The visibility for one action, with what was granted: whoever stores takes it from here, so that nobody stores what was
 * asked for in the place of it.
 */
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

/** For authorize.ts alone. Without a condition everything is visible. */
export const grantVisibility: GrantVisibility = <R extends Resource, Value>(
  resource: R,
  condition?: Condition,
  value?: Value,
  user?: JsonObject,
): Visibility<R, Value> => new GrantedVisibility(resource, value as Value, condition, user);
