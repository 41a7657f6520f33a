import express, { type Express, type NextFunction, type Request, type Response } from "express";
import { createProxyMiddleware } from "http-proxy-middleware";
import { agentToken, sessionOf } from "./agent-token.ts";

/** Admits signed-in users, and replaces their cookie by a token for the agent server. */
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
  // The agent server must not get the browser's credentials: they are for this application.
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
      // When the client leaves, end the request to the agent server: `on_disconnect: "cancel"` depends on it.
      proxyReq: (onward, _request, response) => {
        response.on("close", () => onward.destroy());
      },
    },
  });
  app.use("/agents", authorize, proxy);
  // After the proxy: before it, a parser would read the bodies that the proxy forwards.
  app.use(express.json());
  return app;
};
