import { AsyncLocalStorage } from "node:async_hooks";
import { logOrigin } from "./logging.ts";

/** All copies of the SDK read these keys of `globalThis` for `new Client()` without an `apiUrl`. */
const SDK_FETCH = Symbol.for("langgraph_api:fetch");
const SDK_URL = Symbol.for("langgraph_api:url");
const SERVERS = Symbol.for("threadloom.own-servers");

interface OwnServer {
  /** With the API's prefix; undefined until it listens. */
  address(): string | undefined;
  executes(runId: string): boolean;
}

interface Servers {
  all: Set<OwnServer>;
  current: AsyncLocalStorage<OwnServer>;
}

const own = globalThis as { [SERVERS]?: Servers; [SDK_FETCH]?: typeof fetch; [SDK_URL]?: string };

const serverHere = ({ all, current }: Servers): OwnServer | undefined => {
  const [first, ...others] = all;
  if (others.length === 0) return first;
  const { run_id: runId } = logOrigin();
  const executing = runId === undefined ? undefined : [...all].find((server) => server.executes(runId));
  return current.getStore() ?? executing ?? others.at(-1);
};

/** Sends the request over the network, so that `Auth` and API keys are checked. */
const ownFetch =
  (servers: Servers): typeof fetch =>
  async (input, init) => {
    const address = serverHere(servers)?.address();
    if (address === undefined)
      throw new Error("This server does not listen yet. Call it later, or give the Client an 'apiUrl'.");
    const asked = new URL(input instanceof Request ? input.url : input);
    const target = new URL(address);
    // A client that was created before the server listens lacks the prefix.
    const prefix = target.pathname.replace(/\/$/, "");
    target.pathname = asked.pathname.startsWith(`${prefix}/`) ? asked.pathname : prefix + asked.pathname;
    target.search = asked.search;
    return await fetch(input instanceof Request ? new Request(target, input) : target, init);
  };

const register = (): Servers => {
  const servers: Servers = { all: new Set(), current: new AsyncLocalStorage() };
  own[SERVERS] = servers;
  own[SDK_FETCH] = ownFetch(servers);
  Object.defineProperty(globalThis, SDK_URL, {
    configurable: true,
    get: () => serverHere(servers)?.address(),
  });
  return servers;
};

export const registerOwnServer = (server: OwnServer) => {
  const servers = own[SERVERS] ?? register();
  servers.all.add(server);
  return {
    run: <Result>(work: () => Result): Result => servers.current.run(server, work),
    close(): void {
      servers.all.delete(server);
      if (servers.all.size > 0 || own[SERVERS] !== servers) return;
      for (const key of [SERVERS, SDK_FETCH, SDK_URL]) Reflect.deleteProperty(globalThis, key);
    },
  };
};

export type OwnServerRegistration = ReturnType<typeof registerOwnServer>;
