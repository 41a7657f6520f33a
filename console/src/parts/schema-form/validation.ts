import { Validator, type Schema } from "@cfworker/json-schema";
import {
  ErrorSchemaBuilder,
  type RJSFSchema,
  type RJSFValidationError,
  type ValidatorType,
} from "@rjsf/utils";
import { asSent, SchemaCheck, errorText } from "./schema-check.ts";

/** `$id` is the name of a custom field here, not a schema address. */
const withoutFieldNames = (schema: unknown): unknown =>
  JSON.parse(JSON.stringify(schema, (key, value: unknown) => (key === "$id" ? undefined : value)));

export class SchemaValidation extends SchemaCheck implements ValidatorType {
  validateFormData(value: unknown) {
    const builder = new ErrorSchemaBuilder<unknown>();
    const errors: RJSFValidationError[] = [];
    for (const { path, message } of this.errorsOf(value)) {
      builder.addErrors(message, path);
      errors.push({ message, property: `.${path.join(".")}`, stack: errorText({ path, message }) });
    }
    return { errors, errorSchema: builder.ErrorSchema };
  }

  /** @param schema a part of a prepared schema */
  isValid(schema: RJSFSchema, value: unknown): boolean {
    if (value === undefined) return false;
    try {
      return new Validator(withoutFieldNames(schema) as Schema, "2020-12").validate(asSent(value)).valid;
    } catch {
      return false;
    }
  }

  rawValidation<Result>(_schema: RJSFSchema, value: unknown): { errors?: Result[] } {
    return { errors: this.validateFormData(value).errors as Result[] };
  }
}
