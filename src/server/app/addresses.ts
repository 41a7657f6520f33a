import type { AddressInfo } from "node:net";

/** Where a server listens, and where it reaches itself: not all that is listened on can be called. */
export const addressesOf = ({ address, port }: AddressInfo): { listening: string; called: string } => {
  const urlOf = (host: string): string => `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const called = address === "0.0.0.0" ? "127.0.0.1" : address === "::" ? "::1" : address;
  return { listening: urlOf(address), called: urlOf(called) };
};
