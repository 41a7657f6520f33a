/**
 * Whether every plain object inherits this name, for example `constructor`. LangGraph looks up channels and nodes in
 * plain objects, so such a name breaks it (1.4.18: `pendingWritesByChannel[chan].push is not a function`).
 */
export const isInherited = (name: string): boolean => name in Object.prototype;

export const ownField = <Value>(
  object: Readonly<Record<string, Value>> | undefined,
  name: string,
): Value | undefined => (object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined);
