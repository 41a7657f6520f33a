import { TYPE } from "../type-key.ts";
import type { ValueType } from "../value-type.ts";

const ofBytes = <View>(make: new (buffer: ArrayBuffer) => View) => {
  return (bytes: Buffer): View => new make(new Uint8Array(bytes).buffer);
};

/** Stored data must not reach other globals by name. */
const MAKERS: ReadonlyMap<unknown, (bytes: Buffer) => unknown> = new Map<unknown, (bytes: Buffer) => unknown>(
  [
    ["Buffer", (bytes) => bytes],
    ["ArrayBuffer", (bytes) => new Uint8Array(bytes).buffer],
    ["Int8Array", ofBytes(Int8Array)],
    ["Uint8ClampedArray", ofBytes(Uint8ClampedArray)],
    ["Int16Array", ofBytes(Int16Array)],
    ["Uint16Array", ofBytes(Uint16Array)],
    ["Int32Array", ofBytes(Int32Array)],
    ["Uint32Array", ofBytes(Uint32Array)],
    ["Float32Array", ofBytes(Float32Array)],
    ["Float64Array", ofBytes(Float64Array)],
    ["BigInt64Array", ofBytes(BigInt64Array)],
    ["BigUint64Array", ofBytes(BigUint64Array)],
    ["DataView", ofBytes(DataView)],
  ],
);

/** An unknown class comes back as Uint8Array. Clients see base64. */
export const BYTES: ValueType<ArrayBuffer | ArrayBufferView> = {
  names: ["bytes"],
  is: (value) => ArrayBuffer.isView(value) || value instanceof ArrayBuffer,
  encode: (value) => ({ [TYPE]: "bytes", of: className(value), value: base64(value) }),
  revive(tree) {
    const bytes = Buffer.from(tree.value as string, "base64");
    return MAKERS.get(tree.of)?.(bytes) ?? new Uint8Array(bytes);
  },
  toWire: (value) => base64(value),
};

const className = (value: ArrayBuffer | ArrayBufferView): string => {
  if (!ArrayBuffer.isView(value)) return "ArrayBuffer";
  return Buffer.isBuffer(value) ? "Buffer" : value.constructor.name;
};

const base64 = (value: ArrayBuffer | ArrayBufferView): string =>
  (ArrayBuffer.isView(value)
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    : Buffer.from(value)
  ).toString("base64");
