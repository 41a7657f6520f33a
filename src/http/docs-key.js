/* global window, document, location, sessionStorage, URL, fetch */
/**
 * Before Swagger UI starts, asks for the credential of `docsSignIn` (openapi.ts) and keeps it for the tab's session. A
 * valid cookie avoids the question.
 */
(() => {
  const { noun, header, prefix } = window.docsSignIn;
  const STORED = "threadloom-api-key";
  const documentUrl = new URL(`${location.pathname.replace(/\/$/, "")}/json`, location.origin);
  const startInterface = window.onload;

  /**
   * Credentials that name their scheme. An API key may contain a space, so `Basic …` counts only for `Authorization`.
   */
  const NAMES_ITS_SCHEME = header === "Authorization" ? /^[\w-]+ +\S/ : /^Bearer /i;
  const credentialsOf = (key) =>
    NAMES_ITS_SCHEME.test(key)
      ? { name: "Authorization", value: key }
      : { name: header, value: prefix + key };

  const withKey = (request) => {
    const key = sessionStorage.getItem(STORED);
    if (key === null || new URL(request.url, location.href).origin !== location.origin) return request;
    const { name, value } = credentialsOf(key);
    request.headers ??= {};
    // Credentials from Swagger UI's own dialog win.
    const isGiven = Object.keys(request.headers).some(
      (header) => header.toLowerCase() === name.toLowerCase(),
    );
    if (!isGiven) request.headers[name] = value;
    return request;
  };

  const Bundle = window.SwaggerUIBundle;
  window.SwaggerUIBundle = Object.assign(
    (options) => Bundle({ ...options, requestInterceptor: withKey }),
    Bundle,
  );

  /** Whether the server shows the document. True for other faults, which Swagger UI reports. */
  const isLetIn = async (key) => {
    const { name, value } = credentialsOf(key ?? "");
    const headers = key === null ? {} : { [name]: value };
    // A credential that is no valid header is wrong.
    const answer = await fetch(documentUrl, { method: "HEAD", headers }).catch(() => ({ status: 403 }));
    return answer.status !== 401 && answer.status !== 403;
  };

  const askForKey = () => {
    const page = `
      <form id="api-key-form" style="max-width: 32rem; margin: 4rem auto; font-family: sans-serif; display: grid; gap: 0.8rem">
        <label for="api-key"></label>
        <input id="api-key" type="password" autocomplete="off" required autofocus>
        <button>Show the API</button>
        <p id="api-key-refused" role="alert"></p>
      </form>`;
    document.body.insertAdjacentHTML("afterbegin", page);
    const form = document.querySelector("#api-key-form");
    form.querySelector("label").textContent = `This server wants the ${noun} (${header}):`;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const key = form.querySelector("input").value.trim();
      if (!(await isLetIn(key))) {
        form.querySelector("p").textContent = `The server does not know this ${noun}.`;
        return;
      }
      sessionStorage.setItem(STORED, key);
      form.remove();
      startInterface();
    });
  };

  window.onload = async () => {
    if (await isLetIn(sessionStorage.getItem(STORED))) startInterface();
    else askForKey();
  };
})();
