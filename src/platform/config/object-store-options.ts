import { z } from "zod";
import type { ObjectStoreSetup } from "../database/object-store.ts";
import type { Options, ValuesOf } from "./option.ts";

const isBucketUrl = (value: string): boolean =>
  URL.canParse(value) && new URL(value).protocol === "s3:" && new URL(value).hostname !== "";
const isHttpUrl = (value: string): boolean =>
  URL.canParse(value) && ["http:", "https:"].includes(new URL(value).protocol);

export const OBJECT_STORE_OPTIONS = {
  objectStoreUrl: {
    environment: ["OBJECT_STORE_URL"],
    expected: "a bucket like s3://bucket or s3://bucket/folder",
    schema: z.string().refine(isBucketUrl).optional(),
    description:
      "Bucket of S3 or of a compatible store to which servers move large values of states: s3://bucket/folder. Not set: " +
      "they stay in the database. Needs the package @aws-sdk/client-s3; credentials as for each program of AWS.",
  },
  objectStoreEndpoint: {
    environment: ["OBJECT_STORE_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"],
    expected: "an address like https://host:9000",
    schema: z.string().refine(isHttpUrl).optional(),
    description: "Address of a store other than AWS, such as MinIO.",
  },
  objectStoreRegion: {
    environment: ["OBJECT_STORE_REGION", "AWS_REGION", "AWS_DEFAULT_REGION"],
    expected: "the name of a region, such as eu-central-1",
    schema: z.string().min(1).optional(),
    description: "Region of the bucket.",
  },
} satisfies Options;

/** Undefined without a bucket. */
export const objectStoreOf = (config: ValuesOf<typeof OBJECT_STORE_OPTIONS>): ObjectStoreSetup | undefined =>
  config.objectStoreUrl === undefined
    ? undefined
    : {
        url: config.objectStoreUrl,
        endpoint: config.objectStoreEndpoint,
        region: config.objectStoreRegion,
      };
