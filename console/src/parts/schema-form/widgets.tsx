import {
  ADDITIONAL_PROPERTY_FLAG,
  ariaDescribedByIds,
  enumOptionsIsSelected,
  type BaseInputTemplateProps,
  type RegistryWidgetsType,
  type WidgetProps,
} from "@rjsf/utils";
import styles from "./schema-form.module.css";

const emptyOf = (schema: WidgetProps["schema"]): string | undefined =>
  schema["x-stays"] === true && schema.type === "string" ? "" : undefined;

const naming = ({ schema, label }: Pick<WidgetProps, "schema" | "label">) =>
  schema["x-unlabelled"] === true || ADDITIONAL_PROPERTY_FLAG in schema
    ? { "aria-label": label || "Value" }
    : {};

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

const OneOf = ({ choices, ...props }: WidgetProps & { choices: readonly Choice[] }) => {
  const { id, value, required, disabled, readonly, rawErrors, onChange, onBlur, schema } = props;
  const chosen = choices.findIndex((choice) =>
    enumOptionsIsSelected(choice.value as string, value as string),
  );
  // An alternative (anyOf) always applies: the form library gives the selector a default.
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
/** An unchecked box would look like No, although the graph's default may be Yes. */
const YesOrNo = (props: WidgetProps) => <OneOf {...props} choices={BOOLEANS} />;

const Select = (props: WidgetProps) => <OneOf {...props} choices={props.options.enumOptions ?? []} />;

export const WIDGETS: RegistryWidgetsType = {
  SelectWidget: Select,
  CheckboxWidget: YesOrNo,
  RadioWidget: YesOrNo,
};
