import { lookup, Resolver } from "node:dns/promises";
import { createGate } from "../../platform/lib/gate.ts";

export interface ResolvedAddress {
  address: string;
  family: 4 | 6;
}

/** Rejects without addresses. */
export type ResolveName = (name: string) => Promise<ResolvedAddress[]>;

const DNS_TIMEOUT_MS = 2_000;
const DNS_TRIES = 2;
/**
 * The operating system's resolver shares the process's four threads with files and compression. Slow DNS servers must
 * not hold all four.
 */
const SYSTEM_AT_ONCE = 2;
const SYSTEM_PATIENCE_MS = 10_000;

const byDns = (): ResolveName => {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  return async (name) => {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const found = [
      ...(v4.status === "fulfilled" ? v4.value.map((address) => ({ address, family: 4 as const })) : []),
      ...(v6.status === "fulfilled" ? v6.value.map((address) => ({ address, family: 6 as const })) : []),
    ];
    if (found.length === 0) throw v4.status === "rejected" ? v4.reason : new Error("no address");
    return found;
  };
};

const bySystem = (): ResolveName => {
  const gate = createGate(
    SYSTEM_AT_ONCE,
    SYSTEM_PATIENCE_MS,
    () => new Error("too many names are being looked up"),
  );
  return async (name) => {
    const leave = await gate.enter();
    try {
      const found = await lookup(name, { all: true });
      return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
    } finally {
      leave();
    }
  };
};

/** `internal`: only /etc/hosts and search domains know names of the private network. Plain DNS needs no thread. */
export const createResolveName = (internal: boolean): ResolveName => (internal ? bySystem() : byDns());
