import type * as S3 from "@aws-sdk/client-s3";
import { untilAborted } from "../lib/until-aborted.ts";
import { ObjectStoreError, StartError, StateStorageError } from "../domain/errors.ts";

/** Large texts outside the database. An object is never changed: another text gets another key. */
export interface ObjectStore {
  /** Throws StateStorageError if there is no such object. All methods throw ObjectStoreError. */
  read(key: string): Promise<string>;
  write(key: string, text: string, signal?: AbortSignal): Promise<void>;
  /** Succeeds also without such an object. */
  remove(key: string, signal?: AbortSignal): Promise<void>;
  close(): void;
}

export interface ObjectStoreSetup {
  /** `s3://bucket/prefix` */
  url: string;
  /** `https://host:port`. Undefined: AWS. */
  endpoint: string | undefined;
  region: string | undefined;
}

const PACKAGE = "@aws-sdk/client-s3";
const TRIES = 4;
const CONNECT_MS = 5_000;
/** Without a byte from the store. */
const SILENCE_MS = 20_000;
/** Of all tries together. */
const CALL_MS = 60_000;
/** Most compatible stores expect it if they have no regions. */
const REGION_OF_OTHERS = "us-east-1";

const load = async (): Promise<typeof S3> => {
  try {
    return (await import(PACKAGE)) as typeof S3;
  } catch (error) {
    throw new StartError(
      `OBJECT_STORE_URL needs the package ${PACKAGE}, which can't be loaded: install it with npm install ${PACKAGE}.`,
      { cause: error },
    );
  }
};

/**
 * Undefined without a setup. The package finds credentials where AWS documents it: environment, profile, role of the
 * machine. @throws StartError if the package is missing.
 */
export const openObjectStore = async <Setup extends ObjectStoreSetup | undefined>(
  setup: Setup,
): Promise<ObjectStore | Extract<Setup, undefined>> => {
  if (setup === undefined) return undefined as Extract<Setup, undefined>;
  const { url, endpoint, region } = setup;
  const { S3Client, GetObjectCommand, PutObjectCommand, DeleteObjectCommand } = await load();
  const { hostname: Bucket, pathname } = new URL(url);
  const prefix = decodeURIComponent(pathname)
    .replace(/^\/+/, "")
    .replace(/([^/])$/, "$1/");
  const client = new S3Client({
    maxAttempts: TRIES,
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: SILENCE_MS },
    // Stores other than AWS refuse the checksums that the package adds by itself.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true, region: region ?? REGION_OF_OTHERS }),
  });
  const placeOf = (key: string) => ({ Bucket, Key: prefix + key });
  const asking = async <Result>(
    what: string,
    ask: (options: { abortSignal: AbortSignal }) => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result> => {
    const inTime = AbortSignal.timeout(CALL_MS);
    const abortSignal = signal === undefined ? inTime : AbortSignal.any([inTime, signal]);
    try {
      // The package does not stop reading a body at the signal.
      return await untilAborted(abortSignal, ask({ abortSignal }));
    } catch (error) {
      if (error instanceof Error && error.name === "NoSuchKey")
        throw new StateStorageError("An object of a stored value is missing.", { cause: error });
      throw new ObjectStoreError(what, { cause: error });
    }
  };

  return {
    async read(key) {
      return await asking(`read object ${key}`, async (options) => {
        const { Body } = await client.send(new GetObjectCommand(placeOf(key)), options);
        if (Body === undefined) throw new Error("The answer has no body.");
        return await Body.transformToString();
      });
    },
    async write(key, text, signal) {
      const put = { ...placeOf(key), Body: text, ContentType: "text/plain; charset=utf-8" };
      await asking(
        `store object ${key}`,
        (options) => client.send(new PutObjectCommand(put), options),
        signal,
      );
    },
    async remove(key, signal) {
      const place = new DeleteObjectCommand(placeOf(key));
      await asking(`remove object ${key}`, (options) => client.send(place, options), signal);
    },
    close: () => client.destroy(),
  };
};
