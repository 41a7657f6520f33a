import websocket from "@fastify/websocket";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { KEY_PROTOCOL } from "../access/api-keys.ts";
import type { BodyBudget } from "./body-budget.ts";
import { answerUnknownRoute } from "./errors.ts";
import type { CallerLimits } from "./limits/caller-limits.ts";
import { createSocketIntake, type SocketIntake } from "./socket-intake.ts";

/** Headers that ask for another protocol, or hold only up to the next server. */
const OF_UPGRADES = new Set(["upgrade", "connection", "http2-settings"]);

const isForWebSocket = ({ headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === "websocket";

/**
 * Serves a request that wants to go on in another protocol as the plain one that it may be taken for. Node hands over all of
 * them as soon as anybody listens for WebSockets, also those of clients that would rather speak HTTP/2 (`Upgrade: h2c`, which
 * Java's sends with every request).
 */
const serveAsPlain = (server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void => {
  const lines = [`${request.method} ${request.url} HTTP/1.1`];
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    const name = request.rawHeaders[index] ?? "";
    if (!OF_UPGRADES.has(name.toLowerCase())) lines.push(`${name}: ${request.rawHeaders[index + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit("connection", socket);
};

/** The client's choice that is no secret, if it names one: what is chosen comes back in the answer. */
const chooseProtocol = (protocols: Set<string>): string | false => {
  const [first = false] = protocols;
  return [...protocols].find((name) => !name.startsWith(KEY_PROTOCOL)) ?? first;
};

/** A socket that was not made a WebSocket in this time is closed, whatever it was answered. */
const HANDSHAKE_MS = 10_000;

/** What a server that stops gives to commands that have come over its sockets; they take milliseconds. */
const SETTLING_MS = 1_000;

/** Resolves when the work is done, has failed, or takes longer. */
const within = async (ms: number, work: Promise<void>): Promise<void> =>
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const end = (): void => {
      clearTimeout(timer);
      resolve();
    };
    work.then(end, end);
  });

export interface WebSocketOptions {
  /** Of one message of a client. */
  bytesAtMost: number;
  /** Of the messages and bodies of all. */
  budget: BodyBudget;
  /** Undefined: callers are not told apart. */
  callerLimits: Pick<CallerLimits, "counted"> | undefined;
  /** Resolves when what clients have asked over their sockets is answered. */
  settled: () => Promise<void>;
}

/** For the few answers that are given before any hook runs, of a path that can't be read: nobody else ends the socket. */
export const endRefusedSocket = ({ raw }: FastifyRequest, reply: FastifyReply): void => {
  if (isForWebSocket(raw)) reply.raw.once("finish", () => raw.socket.destroySoon());
};

/** Lets routes have WebSockets (`wsHandler`). Register before them. */
export const acceptWebSockets = async (
  app: FastifyInstance,
  { bytesAtMost, budget, callerLimits, settled }: WebSocketOptions,
): Promise<void> => {
  // Never listens: it only passes on to the plugin what is meant for it.
  const upgrades = createServer();
  /** What ends the sockets of requests that have been refused: nobody else has them. */
  const refusals = new WeakMap<IncomingMessage, () => void>();
  const handshakes = new WeakMap<IncomingMessage, NodeJS.Timeout>();
  /** What was asked last over each connection. */
  const answers = new WeakMap<Duplex, ServerResponse>();
  app.server.prependListener("request", (request: IncomingMessage, response: ServerResponse) => {
    answers.set(request.socket, response);
  });
  app.server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (!isForWebSocket(request)) {
      // Node has forgotten who asked before over it and is not answered: the answers would wait for each other for ever.
      if (answers.get(socket)?.closed === false) return socket.destroy();
      return serveAsPlain(app.server, request, socket, head);
    }
    const timer = setTimeout(() => socket.destroy(), HANDSHAKE_MS);
    socket.once("close", () => clearTimeout(timer));
    handshakes.set(request, timer);
    refusals.set(request, () => socket.destroy());
    upgrades.emit("upgrade", request, socket, head);
  });
  app.addHook("onResponse", (request, _reply, done) => {
    refusals.get(request.raw)?.();
    done();
  });
  await app.register(websocket, {
    options: { server: upgrades, maxPayload: bytesAtMost, handleProtocols: chooseProtocol },
    errorHandler(error, socket, request) {
      // A client that breaks off or breaks the protocol: ws closes its socket.
      request.log.debug({ err: error }, "a WebSocket failed");
      socket.terminate();
    },
    preClose(done) {
      // Whoever is cut off before the answer does not know whether his run was stored, and starts it again.
      void within(SETTLING_MS, settled()).then(() => {
        // Not by a closing handshake: clients take that for the end of what they wait for.
        for (const socket of app.websocketServer.clients) socket.terminate();
        app.websocketServer.close();
        done();
      });
    },
  });
  const intakes = new WeakMap<IncomingMessage, SocketIntake>();
  app.websocketServer.on("connection", (socket, request) => {
    clearTimeout(handshakes.get(request));
    intakes.get(request)?.watch(socket, request.socket);
  });
  // After the plugin's own hook, which says whether a request is one. The plugin would accept the socket first, and log its
  // address, which may hold a key.
  app.addHook("onRequest", (request, reply, done) => {
    if (!request.ws) return done();
    if (request.routeOptions.config.webSocket !== true) return answerUnknownRoute(request, reply);
    const intake = createSocketIntake(budget.open(callerLimits?.counted(request)));
    intakes.set(request.raw, intake);
    request.bodyCharge = intake;
    done();
  });
};
