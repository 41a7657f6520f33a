import { fragment, NO_CONDITION, type Fragment } from "../platform/database/statement.ts";
import type { JsonObject } from "../platform/lib/json.ts";
import type { Actions, Resource, ValueOf } from "./values.ts";
import type { RawBuilder, SqlBool } from "kysely";
import { sqlOf } from "../platform/database/queries.ts";

/**
 * Builds SQL that is true for visible records. `metadata`: SQL of a record's metadata; `parameter`: adds a value and
 * returns its placeholder.
 */
export type Condition = (metadata: string, parameter: (value: unknown) => string) => string;

/** Wraps a condition; see `Visibility.on`. */
export type Within = (condition: string, parameter: (value: unknown) => string) => string;

class GrantedVisibility<R extends Resource, Value> {
  readonly #condition: Condition | undefined;

  constructor(
    readonly resource: R,
    readonly value: Value,
    condition: Condition | undefined,
    readonly user: JsonObject | undefined,
  ) {
    this.#condition = condition;
  }

  get hidesNothing(): boolean {
    return this.#condition === undefined;
  }

  /**
   * The condition for `metadata`, in parentheses, or `true`. `within` wraps the condition for metadata of another
   * table; it is not called if everything is visible.
   */
  on(metadata: string, within: Within = (condition) => condition): Fragment {
    const condition = this.#condition;
    if (condition === undefined) return NO_CONDITION;
    return fragment((parameter) => `(${within(condition(metadata, parameter), parameter)})`);
  }
}

/**
 * Only authorize.ts can create one: the class is not exported, and a test checks the importers of `grantVisibility`.
 */
export type Visibility<R extends Resource = Resource, Value = unknown> = GrantedVisibility<R, Value>;

/** Store its `value` instead of the requested one. */
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

/** Only for authorize.ts. */
export const grantVisibility: GrantVisibility = <R extends Resource, Value>(
  resource: R,
  condition?: Condition,
  value?: Value,
  user?: JsonObject,
): Visibility<R, Value> => new GrantedVisibility(resource, value as Value, condition, user);

/** A visibility as a Kysely `where` condition. For raw statements use `Visibility.on`. */
export const whereVisible = (
  visibility: Visibility,
  metadata: string,
  within?: Within,
): RawBuilder<SqlBool> => sqlOf(visibility.on(metadata, within));
