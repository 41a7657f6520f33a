// The entry of the package also loads its test registry, which needs another validator.
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

/** What is known of a value as somebody writes it. */
export interface Validity {
  /** It is JSON, and fits its schema. A schema that can't be read allows everything. */
  valid: boolean;
  /** One sentence for each thing that is wrong, with its place. */
  errors: readonly string[];
  /** False while what is written is no JSON: the value is then the last one that was. */
  isJson: boolean;
}

export interface SchemaFormProps {
  /** A JSON schema, as a graph gives it: not trusted to be one. */
  schema: unknown;
  value: unknown;
  onChange(value: unknown, validity: Validity): void;
  /** What the value is, where it is written as JSON; e.g. `Context`. */
  label: string;
  /** Whether to say at once how valid the value is: where something else, that may have said otherwise, was shown before. */
  reportsAtOnce?: boolean;
}

/** `judge` is asked once, as the value is shown. */
const useInitialReport = (
  { reportsAtOnce, value, onChange }: SchemaFormProps,
  judge: (value: unknown) => Validity,
): void => {
  const say = useEffectEvent(() => {
    if (reportsAtOnce === true) onChange(value, judge(value));
  });
  // What comes later is said as it is written.
  useEffect(() => say(), []);
};

/** Defaults of the schema are shown, never filled in: a graph has them without being told, also when they change. */
const BEHAVIOUR = {
  emptyObjectFields: "skipDefaults",
  arrayMinItems: { populate: "never" },
  allOf: "skipDefaults",
} as const;

const LAYOUT: UiSchema = {
  "ui:globalOptions": { enableOptionalDataFieldForType: ["object", "array"] },
};

/** What the library can't draw is written as JSON. */
class FormBoundary extends Component<{ otherwise: ReactNode; children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };
  static getDerivedStateFromError = () => ({ hasFailed: true });
  override render() {
    return this.state.hasFailed ? this.props.otherwise : this.props.children;
  }
}

/** Whether a value fits a schema, for whoever has no form. */
const useValidation = (schema: unknown): ((value: unknown) => Validity) => {
  const validation = useMemo(() => new SchemaValidation(isObject(schema) ? schema : {}), [schema]);
  return (value) => {
    const errors = validation.errorsOf(value).map(errorText);
    return { valid: errors.length === 0, errors, isJson: true };
  };
};

/** The whole value as JSON, checked against its schema; what is wrong is said below it. */
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

/**
 * A value as the form of its JSON schema. What a form can't do is written as JSON in its place; if it can do nothing, the whole
 * is. Who gives it another value from outside than it has said gives it another `key`.
 */
export const SchemaForm = (props: SchemaFormProps) => {
  const { schema, value, onChange } = props;
  const id = useId();
  const validation = useMemo(() => new SchemaValidation(isObject(schema) ? schema : {}), [schema]);
  const prepared = useMemo(() => formSchemaOf(schema), [schema]);
  // As the library keeps it: an object that was added and has nothing in it yet is more than none.
  const [written, setWritten] = useState(value);
  const unread = useRef(new Set<string>());
  const latest = useRef(value);
  // Before a field that is taken out says so, which it does in an effect.
  useLayoutEffect(() => {
    latest.current = value;
  }, [value]);
  // Of the first value only: what is half written in a form may fit for a moment in nothing.
  const [against] = useState(() => ("schema" in prepared ? unfitReason(value, prepared.schema) : undefined));
  const judge = (current: unknown): Validity => {
    const errors = validation.errorsOf(current).map(errorText);
    if (unread.current.size === 0) return { valid: errors.length === 0, errors, isJson: true };
    return { valid: false, errors: [...errors, "A part of this is not valid JSON."], isJson: false };
  };
  useInitialReport(props, judge);
  if (!("schema" in prepared) || against !== undefined) {
    const reason = "schema" in prepared ? against : prepared.reason;
    return <CheckedJson {...props} reportsAtOnce={false} note={`No form is available: ${reason}.`} />;
  }
  const context: FormContext = {
    onWritten: (field, isJson) => {
      if (isJson === !unread.current.has(field)) return;
      if (isJson) unread.current.delete(field);
      else unread.current.add(field);
      onChange(latest.current, judge(latest.current));
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
          onChange(sent, judge(sent));
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
