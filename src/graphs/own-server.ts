/** All copies of the SDK read these keys of `globalThis` for `new Client()` without an `apiUrl`. */
const SDK_FETCH = Symbol.for("langgraph_api:fetch");
const SDK_URL = Symbol.for("langgraph_api:url");
const SERVERS = Symbol.for("threadloom.own-servers");

interface OwnServer {
  /** With the API's prefix; undefined until it listens. */
  address(): string | undefined;
}

const own = globalThis as { [SERVERS]?: Set<OwnServer>; [SDK_FETCH]?: typeof fetch; [SDK_URL]?: string };

const addresses = (): string[] =>
  [...(own[SERVERS] ?? [])].map((server) => server.address()).filter((address) => address !== undefined);

/** Sends the request over the network, so that `Auth` and API keys are checked. */
const ownFetch: typeof fetch = async (input, init) => {
  const [address, ...others] = addresses();
  if (address === undefined)
    throw new Error("This server does not listen yet. Call it later, or give the Client an 'apiUrl'.");
  if (others.length > 0)
    throw new Error("Several servers listen in this process. Give the Client an 'apiUrl'.");
  const asked = new URL(input instanceof Request ? input.url : input);
  const target = new URL(address);
  // A client that was created before the server listens lacks the prefix.
  const prefix = target.pathname.replace(/\/$/, "");
  target.pathname = asked.pathname.startsWith(`${prefix}/`) ? asked.pathname : prefix + asked.pathname;
  target.search = asked.search;
  return await fetch(input instanceof Request ? new Request(target, input) : target, init);
};

/** Until the returned part is closed. */
export const registerOwnServer = (server: OwnServer): { close(): void } => {
  const servers = (own[SERVERS] ??= new Set());
  servers.add(server);
  own[SDK_FETCH] = ownFetch;
  Object.defineProperty(globalThis, SDK_URL, { configurable: true, get: () => addresses()[0] });
  return {
    close(): void {
      servers.delete(server);
      if (servers.size > 0) return;
      for (const key of [SERVERS, SDK_FETCH, SDK_URL]) Reflect.deleteProperty(globalThis, key);
    },
  };
};
