import {
  ADDITIONAL_PROPERTY_FLAG,
  ariaDescribedByIds,
  enumOptionsIsSelected,
  type BaseInputTemplateProps,
  type RegistryWidgetsType,
  type WidgetProps,
} from "@rjsf/utils";
import styles from "./schema-form.module.css";

/** What an emptied field stands for: nothing, unless it is an item of a list or has to be there. */
const emptyOf = (schema: WidgetProps["schema"]): string | undefined =>
  schema["x-stays"] === true && schema.type === "string" ? "" : undefined;

/** What screen readers say where no label stands beside it. */
const naming = ({ schema, label }: Pick<WidgetProps, "schema" | "label">) =>
  schema["x-unlabelled"] === true || ADDITIONAL_PROPERTY_FLAG in schema
    ? { "aria-label": label || "Value" }
    : {};

/** Texts and numbers. A text grows with what is written: prompts have many lines. */
export const TextInput = (props: BaseInputTemplateProps) => {
  const { id, value, schema, required, disabled, readonly, rawErrors, onChange, onBlur } = props;
  const attributes = {
    id,
    name: id,
    required,
    disabled,
    readOnly: readonly || schema.const !== undefined,
    ...naming(props),
    "aria-invalid": (rawErrors?.length ?? 0) > 0,
    "aria-describedby": ariaDescribedByIds(id),
    onBlur: () => onBlur(id, value),
    onChange: ({ target }: { target: { value: string } }) =>
      onChange(target.value === "" ? emptyOf(schema) : target.value),
  };
  const text = value === undefined || value === null ? "" : String(value);
  if (schema.type === "number" || schema.type === "integer")
    return <input {...attributes} value={text} type="text" inputMode="decimal" autoComplete="off" />;
  return <textarea {...attributes} className={styles.text} value={text} rows={1} />;
};

interface Choice {
  label: string;
  value: unknown;
}

/** One of a few. What is not chosen is not sent. */
const OneOf = ({ choices, ...props }: WidgetProps & { choices: readonly Choice[] }) => {
  const { id, value, required, disabled, readonly, rawErrors, onChange, onBlur, schema } = props;
  const chosen = choices.findIndex((choice) =>
    enumOptionsIsSelected(choice.value as string, value as string),
  );
  // Alternatives of a schema (anyOf) are chosen here, too, and one of them always applies: the library gives them a default.
  const mayBeNone = chosen === -1 || (!required && schema.default === undefined);
  return (
    <select
      id={id}
      name={id}
      {...naming(props)}
      value={chosen === -1 ? "" : String(chosen)}
      required={required}
      disabled={disabled || readonly}
      aria-invalid={(rawErrors?.length ?? 0) > 0}
      aria-describedby={ariaDescribedByIds(id)}
      onBlur={() => onBlur(id, value)}
      onChange={({ target }) =>
        onChange(target.value === "" ? undefined : choices[Number(target.value)]?.value)
      }
    >
      {mayBeNone && <option value="">–</option>}
      {choices.map(({ label }, index) => (
        <option key={index} value={index}>
          {label}
        </option>
      ))}
    </select>
  );
};

const BOOLEANS: readonly Choice[] = [
  { label: "Yes", value: true },
  { label: "No", value: false },
];
/** Yes, no, or nothing said: a box that is not ticked would look like a no where the graph's default is a yes. */
const YesOrNo = (props: WidgetProps) => <OneOf {...props} choices={BOOLEANS} />;

const Select = (props: WidgetProps) => <OneOf {...props} choices={props.options.enumOptions ?? []} />;

export const WIDGETS: RegistryWidgetsType = {
  SelectWidget: Select,
  CheckboxWidget: YesOrNo,
  RadioWidget: YesOrNo,
};
