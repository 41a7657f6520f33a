export type Properties = Record<string, unknown>;

/** Sets a property whose name comes from outside. Assigning to `__proto__` would change the prototype. */
export const setProperty = (target: Properties, name: string, value: unknown): void => {
  if (name === "__proto__") {
    Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
  } else target[name] = value;
};
