// The main entry also loads a test registry, which needs another validator.
import Form from "@rjsf/core/lib/components/Form.js";
import type { UiSchema } from "@rjsf/utils";
import {
  Component,
  useEffect,
  useEffectEvent,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type ReactNode,
} from "react";
import { isObject } from "./is-object.ts";
import { JsonEditor } from "./json.tsx";
import { FIELDS, type FormContext } from "./schema-form/fields.tsx";
import { formSchemaOf } from "./schema-form/form-schema.ts";
import { asSent, errorText } from "./schema-form/schema-check.ts";
import { keysOutsideForm, unfitReason } from "./schema-form/shape.ts";
import { TEMPLATES } from "./schema-form/templates.tsx";
import { SchemaValidation } from "./schema-form/validation.ts";
import { WIDGETS } from "./schema-form/widgets.tsx";

export interface Validity {
  /** True if the schema cannot be read. */
  valid: boolean;
  errors: readonly string[];
  /** False while the text is not JSON; the value is then the last valid one. */
  isJson: boolean;
}

export interface SchemaFormProps {
  /** From a graph, so it may be invalid. */
  schema: unknown;
  value: unknown;
  onChange(value: unknown, validity: Validity): void;
  /** E.g. `Context`. */
  label: string;
  /** Report on mount, because the previous view may have reported another validity. */
  reportsAtOnce?: boolean;
}

const useInitialReport = (
  { reportsAtOnce, value, onChange }: SchemaFormProps,
  validate: (value: unknown) => Validity,
): void => {
  const report = useEffectEvent(() => {
    if (reportsAtOnce === true) onChange(value, validate(value));
  });
  useEffect(() => report(), []);
};

/** Defaults are shown but not filled in, because the graph applies them and may change them. */
const BEHAVIOUR = {
  emptyObjectFields: "skipDefaults",
  arrayMinItems: { populate: "never" },
  allOf: "skipDefaults",
} as const;

const LAYOUT: UiSchema = {
  "ui:globalOptions": { enableOptionalDataFieldForType: ["object", "array"] },
};

/** Falls back to JSON if the form library throws. */
class FormBoundary extends Component<{ otherwise: ReactNode; children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };
  static getDerivedStateFromError = () => ({ hasFailed: true });
  override render() {
    return this.state.hasFailed ? this.props.otherwise : this.props.children;
  }
}

const useValidation = (schema: unknown): ((value: unknown) => Validity) => {
  const validation = useMemo(() => new SchemaValidation(isObject(schema) ? schema : {}), [schema]);
  return (value) => {
    const errors = validation.errorsOf(value).map(errorText);
    return { valid: errors.length === 0, errors, isJson: true };
  };
};

export const CheckedJson = (props: SchemaFormProps & { note?: string | undefined }) => {
  const { schema, value, onChange, label, note } = props;
  const validate = useValidation(schema);
  useInitialReport(props, validate);
  const { errors } = validate(value);
  return (
    <div className="stack">
      {note !== undefined && <p className="faint">{note}</p>}
      <JsonEditor
        label={`${label} (JSON)`}
        initial={value}
        onChange={(written) =>
          written === undefined
            ? onChange(value, { valid: false, errors: ["This is not valid JSON."], isJson: false })
            : onChange(written.json, validate(written.json))
        }
      />
      <Errors errors={errors} />
    </div>
  );
};

const SHOWN_AT_MOST = 8;

const Errors = ({ errors }: { errors: readonly string[] }) => (
  <div role="status">
    {errors.length > 0 && (
      <div className="notice bad">
        <p>The value does not match its schema:</p>
        <ul>
          {errors.slice(0, SHOWN_AT_MOST).map((error, index) => (
            <li key={index}>{error}</li>
          ))}
          {errors.length > SHOWN_AT_MOST && <li>and more</li>}
        </ul>
      </div>
    )}
  </div>
);

/** Edits parts without a form as JSON. Change `key` to set another value from outside. */
export const SchemaForm = (props: SchemaFormProps) => {
  const { schema, value, onChange } = props;
  const id = useId();
  const validation = useMemo(() => new SchemaValidation(isObject(schema) ? schema : {}), [schema]);
  const prepared = useMemo(() => formSchemaOf(schema), [schema]);
  // The form library distinguishes an empty object from no object.
  const [written, setWritten] = useState(value);
  const unread = useRef(new Set<string>());
  const latest = useRef(value);
  // A removed field reports in an effect, which must see the latest value.
  useLayoutEffect(() => {
    latest.current = value;
  }, [value]);
  // Only for the first value: a half-written value may not match for a moment.
  const [against] = useState(() => ("schema" in prepared ? unfitReason(value, prepared.schema) : undefined));
  const validate = (current: unknown): Validity => {
    const errors = validation.errorsOf(current).map(errorText);
    if (unread.current.size === 0) return { valid: errors.length === 0, errors, isJson: true };
    return { valid: false, errors: [...errors, "A part of this is not valid JSON."], isJson: false };
  };
  useInitialReport(props, validate);
  if (!("schema" in prepared) || against !== undefined) {
    const reason = "schema" in prepared ? against : prepared.reason;
    return <CheckedJson {...props} reportsAtOnce={false} note={`No form is available: ${reason}.`} />;
  }
  const context: FormContext = {
    onWritten: (field, isJson) => {
      if (isJson === !unread.current.has(field)) return;
      if (isJson) unread.current.delete(field);
      else unread.current.add(field);
      onChange(latest.current, validate(latest.current));
    },
  };
  const beside = keysOutsideForm(value, prepared.schema);
  return (
    <FormBoundary otherwise={<CheckedJson {...props} note="No form is available: its schema is unusual." />}>
      <Form
        tagName="div"
        idPrefix={id}
        schema={prepared.schema}
        uiSchema={LAYOUT}
        validator={validation}
        formData={written}
        widgets={WIDGETS}
        fields={FIELDS}
        formContext={context}
        templates={TEMPLATES}
        liveValidate="onChange"
        showErrorList={false}
        noHtml5Validate
        experimental_defaultFormStateBehavior={BEHAVIOUR}
        onChange={({ formData }) => {
          const sent = asSent(formData);
          setWritten(formData);
          onChange(sent, validate(sent));
        }}
      />
      {beside.length > 0 && (
        <p className="faint">
          Only editable as JSON: {beside.slice(0, 5).join(", ")}
          {beside.length > 5 && ` and ${beside.length - 5} more`}.
        </p>
      )}
    </FormBoundary>
  );
};
