const SEED = 0x9e3779b9 + 16 + 3_923_095;

const turned = (word: number, bits: number): number => (word << bits) | (word >>> (32 - bits));

/**
 * PostgreSQL's hash of a uuid, as a signed 32-bit number: `uuid_hash`, which is Bob Jenkins' lookup3 over 16 bytes
 * (src/common/hashfn.c of PostgreSQL). Citus places rows by it.
 */
export const uuidHash = (uuid: string): number => {
  const bytes = Buffer.from(uuid.replaceAll("-", ""), "hex");
  let a = (SEED + bytes.readInt32LE(0)) | 0;
  let b = (SEED + bytes.readInt32LE(4)) | 0;
  let c = (SEED + bytes.readInt32LE(8)) | 0;
  a = ((a - c) ^ turned(c, 4)) | 0;
  c = (c + b) | 0;
  b = ((b - a) ^ turned(a, 6)) | 0;
  a = (a + c) | 0;
  c = ((c - b) ^ turned(b, 8)) | 0;
  b = (b + a) | 0;
  a = ((a - c) ^ turned(c, 16)) | 0;
  c = (c + b) | 0;
  b = ((b - a) ^ turned(a, 19)) | 0;
  a = (a + c) | 0;
  c = ((c - b) ^ turned(b, 4)) | 0;
  b = (b + a) | 0;

  a = (a + bytes.readInt32LE(12)) | 0;
  c = ((c ^ b) - turned(b, 14)) | 0;
  a = ((a ^ c) - turned(c, 11)) | 0;
  b = ((b ^ a) - turned(a, 25)) | 0;
  c = ((c ^ b) - turned(b, 16)) | 0;
  a = ((a ^ c) - turned(c, 4)) | 0;
  b = ((b ^ a) - turned(a, 14)) | 0;
  return ((c ^ b) - turned(b, 24)) | 0;
};
