import express, { type Express, type NextFunction, type Request, type Response } from "express";
import { createProxyMiddleware } from "http-proxy-middleware";
import { agentToken, sessionOf } from "./agent-token.ts";

/** Lets in who has signed in here, and tells the agent server who that is. */
const authorize = async (request: Request, response: Response, next: NextFunction): Promise<void> => {
  if (request.headers["sec-fetch-site"] === "cross-site") {
    response.status(403).json({ detail: "Pages of other sites may not call this." });
    return;
  }
  const session = sessionOf(request.headers.cookie);
  if (session === undefined) {
    response.status(401).json({ detail: "Sign in first." });
    return;
  }
  // The browser's own are for this application: the agent server gets none of them.
  for (const name of ["cookie", "origin", "x-api-key"]) delete request.headers[name];
  request.headers.authorization = `Bearer ${await agentToken(session)}`;
  next();
};

/** `/agents` is the API of the agent server at `target`. */
export const createApp = (target: string): Express => {
  const app = express();
  const proxy = createProxyMiddleware<Request, Response>({
    target,
    changeOrigin: true,
    on: {
      // A client that leaves ends its request at the agent server, too: `on_disconnect: "cancel"` depends on it.
      proxyReq: (onward, _request, response) => {
        response.on("close", () => onward.destroy());
      },
    },
  });
  app.use("/agents", authorize, proxy);
  // Behind the proxy: in front of it, a parser would read the bodies that are to be handed on.
  app.use(express.json());
  return app;
};
