import type { AddressInfo } from "node:net";

/** `called` differs from `listening` for "all addresses", which clients can't connect to. */
export const addressesOf = ({ address, port }: AddressInfo): { listening: string; called: string } => {
  const urlOf = (host: string): string => `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const called = address === "0.0.0.0" ? "127.0.0.1" : address === "::" ? "::1" : address;
  return { listening: urlOf(address), called: urlOf(called) };
};
