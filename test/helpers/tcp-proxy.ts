import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { once } from "node:events";

export interface ProxiedConnection {
  /** `application_name` of the startup packet; empty until it is read. */
  readonly application: string;
}

export interface TcpProxy {
  /** The same database, through the proxy. */
  readonly connectionString: string;
  readonly connections: readonly ProxiedConnection[];
  /** Ends connections at once, like the kernel of a crashed machine. */
  cut(which?: (connection: ProxiedConnection) => boolean): void;
  /** Makes these connections half-open: from now on they transfer nothing, without notice. Returns their number. */
  swallow(which?: (connection: ProxiedConnection) => boolean): number;
  /**
   * Cuts each of these connections at the next answer of Postgres: the statement is done, but the client does not learn it. Returns their
   * number.
   */
  loseNextAnswer(which?: (connection: ProxiedConnection) => boolean): number;
  /** New connections go to this port of the same machine. */
  leadTo(port: number): void;
  /** An additional delay in milliseconds in each direction. */
  delay(milliseconds: number): void;
  close(): Promise<void>;
}

interface Pair extends ProxiedConnection {
  application: string;
  client: Socket;
  server: Socket;
  swallowed: boolean;
  losesNextAnswer: boolean;
}

/** A startup packet is a list of names and values, each ended by a zero byte. */
const applicationOf = (packet: Buffer): string =>
  /application_name\0([^\0]*)\0/.exec(packet.toString("latin1"))?.[1] ?? "";

/**
 * A TCP proxy in front of Postgres that can cut connections, drop their data, and delay it.
 * @param port of a closed proxy, to replace it; a free one if left out
 */
export const startTcpProxy = async (connectionString: string, port = 0): Promise<TcpProxy> => {
  const { hostname, port: firstTarget } = new URL(connectionString);
  let target = Number(firstTarget);
  const pairs = new Set<Pair>();
  let delayMs = 0;
  const destroy = ({ client, server }: Pair): void => {
    client.destroy();
    server.destroy();
  };

  /** Forwards in order; data sent before a change of the delay may arrive later. */
  const pipe = (pair: Pair, from: Socket, to: Socket): void => {
    from.on("data", (chunk: Buffer) => {
      if (pair.application === "" && from === pair.client) pair.application = applicationOf(chunk);
      if (pair.swallowed) return;
      if (pair.losesNextAnswer && from === pair.server) return destroy(pair);
      if (delayMs === 0) to.write(chunk);
      else setTimeout(() => pair.swallowed || to.destroyed || to.write(chunk), delayMs);
    });
    const end = (): void => {
      // A half-open connection stays open for the other side.
      if (!pair.swallowed) to.destroy();
      if (pair.client.destroyed && pair.server.destroyed) pairs.delete(pair);
    };
    from.on("error", () => undefined);
    from.on("close", end);
  };

  const proxy = createServer((client) => {
    const server = connect(target, hostname);
    client.setNoDelay(true);
    server.setNoDelay(true);
    const pair: Pair = { application: "", client, server, swallowed: false, losesNextAnswer: false };
    pairs.add(pair);
    pipe(pair, client, server);
    pipe(pair, server, client);
  });
  proxy.listen(port, "127.0.0.1");
  await once(proxy, "listening");
  const url = new URL(connectionString);
  url.port = String((proxy.address() as AddressInfo).port);

  const selected = (which: (connection: ProxiedConnection) => boolean): Pair[] => [...pairs].filter(which);
  return {
    connectionString: url.href,
    get connections() {
      return [...pairs];
    },
    cut: (which = () => true) => selected(which).forEach(destroy),
    swallow(which = () => true) {
      const found = selected(which);
      for (const pair of found) pair.swallowed = true;
      return found.length;
    },
    loseNextAnswer(which = () => true) {
      const found = selected(which);
      for (const pair of found) pair.losesNextAnswer = true;
      return found.length;
    },
    leadTo(to) {
      target = to;
    },
    delay(milliseconds) {
      delayMs = milliseconds;
    },
    async close() {
      pairs.forEach(destroy);
      proxy.close();
      await once(proxy, "close");
    },
  };
};
