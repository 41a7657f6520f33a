import {
  ADDITIONAL_PROPERTY_FLAG,
  canExpand,
  descriptionId,
  errorId,
  helpId,
  titleId,
  type ArrayFieldItemTemplateProps,
  type ArrayFieldTemplateProps,
  type FieldErrorProps,
  type FieldTemplateProps,
  type IconButtonProps,
  type MultiSchemaFieldTemplateProps,
  type ObjectFieldTemplateProps,
  type OptionalDataControlsTemplateProps,
  type RJSFSchema,
  type TemplatesType,
} from "@rjsf/utils";
import { CHOICES_FIELD, JSON_FIELD, MESSAGES_FIELD } from "./kinds.ts";
import { TextInput } from "./widgets.tsx";
import styles from "./schema-form.module.css";

const Hints = ({ id, schema }: { id: string; schema: RJSFSchema }) => {
  const format = schema["x-format"] as string | undefined;
  const fallback = schema["x-default"] as string | undefined;
  return (
    <>
      {schema.description !== undefined && (
        <p id={descriptionId(id)} className={styles.hint}>
          {schema.description}
        </p>
      )}
      {(format !== undefined || fallback !== undefined) && (
        <p id={helpId(id)} className={styles.hint}>
          {format !== undefined && `Format: ${format}. `}
          {fallback !== undefined && (
            <>
              Default: <code>{fallback}</code>
            </>
          )}
        </p>
      )}
    </>
  );
};

const isWhole = ({ type, $id, anyOf, oneOf }: RJSFSchema): boolean =>
  $id === JSON_FIELD ||
  $id === MESSAGES_FIELD ||
  ($id !== CHOICES_FIELD &&
    anyOf === undefined &&
    oneOf === undefined &&
    (type === "object" || type === "array"));

const Field = (props: FieldTemplateProps) => {
  const { id, label, children, errors, hidden, required, schema, disabled, readonly } = props;
  if (hidden) return <div hidden>{children}</div>;
  const isAdded = ADDITIONAL_PROPERTY_FLAG in schema;
  // A list item has a number, and an alternative has the label of its selector.
  const isLabelled = schema["x-unlabelled"] !== true && !isWhole(schema) && !isAdded;
  const field = (
    <div className={styles.field}>
      {isLabelled && schema.$id === CHOICES_FIELD && <span className={styles.label}>{label}</span>}
      {isLabelled && schema.$id !== CHOICES_FIELD && (
        <label htmlFor={schema.anyOf ? `${id}__anyof_select` : schema.oneOf ? `${id}__oneof_select` : id}>
          {label}
          {required && <span className="faint"> (required)</span>}
        </label>
      )}
      {children}
      {!isWhole(schema) && <Hints id={id} schema={schema} />}
      {errors}
    </div>
  );
  if (!isAdded) return field;
  return (
    <div className={styles.added}>
      <label>
        <span className="unseen">Key</span>
        <input
          key={label}
          defaultValue={label}
          onBlur={props.onKeyRenameBlur}
          disabled={disabled || readonly}
        />
      </label>
      {field}
      <button type="button" className="plain" aria-label={`Remove ${label}`} onClick={props.onRemoveProperty}>
        Remove
      </button>
    </div>
  );
};

const ObjectField = (props: ObjectFieldTemplateProps) => {
  const { title, schema, properties, fieldPathId, formData, uiSchema, onAddProperty, optionalDataControl } =
    props;
  const fields = (
    <>
      {properties.map(({ content }) => content)}
      {(optionalDataControl === undefined || formData !== undefined) &&
        canExpand(schema, uiSchema, formData) && (
          <div>
            <button type="button" onClick={onAddProperty}>
              Add a key
            </button>
          </div>
        )}
    </>
  );
  if (fieldPathId.path.length === 0) return <div className={styles.fields}>{fields}</div>;
  return (
    <fieldset className={styles.group}>
      <legend>{title || "Fields"}</legend>
      <Hints id={fieldPathId.$id} schema={schema} />
      {optionalDataControl}
      {fields}
    </fieldset>
  );
};

const ListField = ({
  title,
  items,
  canAdd,
  onAddClick,
  schema,
  fieldPathId,
  optionalDataControl,
  formData,
}: ArrayFieldTemplateProps) => {
  // No value and an empty list are different values.
  const isGiven = optionalDataControl === undefined || Array.isArray(formData);
  return (
    <fieldset className={styles.group}>
      <legend id={titleId(fieldPathId)}>{title || "List"}</legend>
      <Hints id={fieldPathId.$id} schema={schema} />
      {items}
      <div className="row">
        {isGiven && canAdd && (
          <button type="button" onClick={onAddClick}>
            Add an item
          </button>
        )}
        {optionalDataControl}
      </div>
    </fieldset>
  );
};

const ListItem = ({ children, buttonsProps, hasToolbar, index }: ArrayFieldItemTemplateProps) => {
  const { hasMoveUp, hasMoveDown, hasRemove, onMoveUpItem, onMoveDownItem, onRemoveItem } = buttonsProps;
  return (
    <div className={styles.item} role="group" aria-label={`Item ${index + 1}`}>
      {children}
      {hasToolbar && (
        <div className={styles.itemButtons}>
          {(hasMoveUp || hasMoveDown) && (
            <>
              <button
                type="button"
                className="plain"
                disabled={!hasMoveUp}
                aria-label="Move up"
                onClick={onMoveUpItem}
              >
                ↑
              </button>
              <button
                type="button"
                className="plain"
                disabled={!hasMoveDown}
                aria-label="Move down"
                onClick={onMoveDownItem}
              >
                ↓
              </button>
            </>
          )}
          {hasRemove && (
            <button type="button" className="plain" onClick={onRemoveItem}>
              Remove
            </button>
          )}
        </div>
      )}
    </div>
  );
};

const Alternatives = ({ selector, optionSchemaField }: MultiSchemaFieldTemplateProps) => (
  <div className={styles.alternatives}>
    {selector}
    {optionSchemaField}
  </div>
);

const Optional = ({ onAddClick, onRemoveClick }: OptionalDataControlsTemplateProps) =>
  onAddClick !== undefined ? (
    <div className="row">
      <span className="faint">No value.</span>
      <button type="button" onClick={onAddClick}>
        Add
      </button>
    </div>
  ) : (
    <div>
      <button type="button" className="plain" onClick={onRemoveClick}>
        Leave out
      </button>
    </div>
  );

const Errors = ({ errors = [], fieldPathId }: FieldErrorProps) => (
  <p id={errorId(fieldPathId)} role="status" className={styles.error}>
    {errors.length === 0 ? null : `This ${errors.map(String).join("; ")}.`}
  </p>
);

const Nothing = () => null;
const Button = ({ onClick, children }: IconButtonProps) => (
  <button type="button" onClick={onClick}>
    {children}
  </button>
);

export const TEMPLATES: Partial<Omit<TemplatesType, "ButtonTemplates">> & {
  ButtonTemplates: TemplatesType["ButtonTemplates"];
} = {
  FieldTemplate: Field,
  ObjectFieldTemplate: ObjectField,
  ArrayFieldTemplate: ListField,
  ArrayFieldItemTemplate: ListItem,
  MultiSchemaFieldTemplate: Alternatives,
  OptionalDataControlsTemplate: Optional,
  FieldErrorTemplate: Errors,
  BaseInputTemplate: TextInput,
  // Rendered by `Field`.
  DescriptionFieldTemplate: Nothing,
  FieldHelpTemplate: Nothing,
  TitleFieldTemplate: Nothing,
  ErrorListTemplate: Nothing,
  ButtonTemplates: {
    SubmitButton: Nothing,
    AddButton: Button,
    CopyButton: Button,
    MoveDownButton: Button,
    MoveUpButton: Button,
    RemoveButton: Button,
    ClearButton: Button,
  },
};
