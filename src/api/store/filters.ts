import { invalid } from "../../platform/domain/errors.ts";
import { storableObject } from "../../platform/domain/json-schemas.ts";

export interface FilterCondition {
  field: string;
  operator: "$eq" | "$ne" | "$in" | "$nin" | "$gt" | "$gte" | "$lt" | "$lte";
  /**
   * In a list, because SQL can't distinguish JSON's null from a missing value. An empty list stands for `undefined`,
   * which equals an absent field.
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
      // As text for SQL's numeric, because JSON has no infinity.
      return Number.isNaN(number) ? [] : [String(number)];
    }
  }
};

/**
 * `{field: value}` or `{field: {"$gt": 1, "$lt": 5}}`; compares objects and lists whole. Throws `invalid` for an
 * unknown operator, where LangGraph's own store finds nothing.
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
