import { invalid } from "../../platform/domain/errors.ts";
import { storableObject } from "../../platform/domain/json-schemas.ts";

/** One condition on a field of an item's value; all of a search's conditions must hold. */
export interface FilterCondition {
  field: string;
  operator: "$eq" | "$ne" | "$in" | "$nin" | "$gt" | "$gte" | "$lt" | "$lte";
  /**
   * What the field is compared with: one element, or none for JavaScript's `undefined`, which equals a field
   * that is absent. Boxed because SQL would not tell JSON's null from a missing value.
   */
  operand: [] | [unknown];
}

type Operator = FilterCondition["operator"];

const OPERATORS: readonly string[] = ["$eq", "$ne", "$in", "$nin", "$gt", "$gte", "$lt", "$lte"];
const isOperator = (name: string): name is Operator => OPERATORS.includes(name);

const box = (value: unknown): [] | [unknown] => (value === undefined ? [] : [value]);

const operandOf = (field: string, operator: Operator, value: unknown): [] | [unknown] => {
  switch (operator) {
    case "$eq":
    case "$ne":
      return box(value);
    case "$in":
    case "$nin":
      if (!Array.isArray(value)) throw invalid(`'filter.${field}.${operator}' must be a list.`);
      return [value];
    default: {
      const number = Number(value);
      // As text, for SQL's numeric: JSON has no infinity. Nothing is greater or less than what is no number.
      return Number.isNaN(number) ? [] : [String(number)];
    }
  }
};

/**
 * The conditions of a LangGraph filter: `{field: value}` for equality, `{field: {"$gt": 1, "$lt": 5}}` for the
 * operators. Values that are objects or lists are compared whole.
 *
 * Throws `invalid` for an operator that does not exist: LangGraph's own store would find nothing, silently.
 */
export const filterConditions = (filter: Record<string, unknown> | undefined): FilterCondition[] => {
  if (filter === undefined) return [];
  if (!storableObject.safeParse(filter).success) {
    throw invalid("'filter' must be an object without NUL characters and halves of surrogate pairs.");
  }
  return Object.entries(filter).flatMap(([field, wanted]): FilterCondition[] => {
    if (typeof wanted !== "object" || wanted === null || Array.isArray(wanted)) {
      return [{ field, operator: "$eq", operand: box(wanted) }];
    }
    const entries = Object.entries(wanted);
    if (entries.length > 0 && entries.every(([name]) => !name.startsWith("$"))) {
      return [{ field, operator: "$eq", operand: [wanted] }];
    }
    return entries.map(([operator, value]) => {
      if (!isOperator(operator)) {
        throw invalid(
          `'filter.${field}': '${operator}' is not one of the operators ${OPERATORS.join(", ")}.`,
        );
      }
      return { field, operator, operand: operandOf(field, operator, value) };
    });
  });
};
