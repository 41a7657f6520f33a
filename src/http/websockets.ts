import websocket from "@fastify/websocket";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { KEY_PROTOCOL } from "../access/api-keys.ts";
import { answerUnknownRoute } from "./errors.ts";

/** Headers that request an upgrade, or apply to one connection only. */
const OF_UPGRADES = new Set(["upgrade", "connection", "http2-settings"]);

const isForWebSocket = ({ headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === "websocket";

/**
 * A listener for WebSockets gets all upgrades from Node, also `Upgrade: h2c`, which Java's client sends with every
 * request.
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

/** Prefers a protocol that is not a key, because the answer repeats the choice. */
const chooseProtocol = (protocols: Set<string>): string | false => {
  const [first = false] = protocols;
  return [...protocols].find((name) => !name.startsWith(KEY_PROTOCOL)) ?? first;
};

/** Time limit for a socket to become a WebSocket. */
const HANDSHAKE_MS = 10_000;

/** Received commands get this time when the server stops. They take milliseconds. */
const SETTLING_MS = 1_000;

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
  /** Per message of a client. */
  bytesAtMost: number;
  /** Resolves when all commands over sockets are answered. */
  settled: () => Promise<void>;
}

/** No hook sees refusals of unreadable paths, so nothing else ends the socket. */
export const endRefusedSocket = ({ raw }: FastifyRequest, reply: FastifyReply): void => {
  if (isForWebSocket(raw)) reply.raw.once("finish", () => raw.socket.destroySoon());
};

/** Register before the routes that use `wsHandler`. */
export const acceptWebSockets = async (
  app: FastifyInstance,
  { bytesAtMost, settled }: WebSocketOptions,
): Promise<void> => {
  // This server never listens. It only passes upgrades for WebSockets on to the plugin.
  const upgrades = createServer();
  /** Closes the sockets of refused requests, which nothing else closes. */
  const refusals = new WeakMap<IncomingMessage, () => void>();
  const handshakes = new WeakMap<IncomingMessage, NodeJS.Timeout>();
  /** The last response of each connection. */
  const answers = new WeakMap<Duplex, ServerResponse>();
  app.server.prependListener("request", (request: IncomingMessage, response: ServerResponse) => {
    answers.set(request.socket, response);
  });
  app.server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (!isForWebSocket(request)) {
      // Node has lost track of an unanswered earlier request, and the two answers would block each other forever.
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
      // The client broke off or violated the protocol; ws closes its socket.
      request.log.debug({ err: error }, "a WebSocket failed");
      socket.terminate();
    },
    preClose(done) {
      // A client that is disconnected without an answer does not know whether its run was stored, and starts it again.
      void within(SETTLING_MS, settled()).then(() => {
        // No closing handshake: clients would take it for the end of a run's events.
        for (const socket of app.websocketServer.clients) socket.terminate();
        app.websocketServer.close();
        done();
      });
    },
  });
  app.websocketServer.on("connection", (_socket, request) => clearTimeout(handshakes.get(request)));
  // After the plugin's own hook, which sets `request.ws`. The plugin would accept the socket before refusing it, and
  // log its address, which may hold a key.
  app.addHook("onRequest", (request, reply, done) => {
    if (!request.ws) return done();
    if (request.routeOptions.config.webSocket === true) done();
    else answerUnknownRoute(request, reply);
  });
};
