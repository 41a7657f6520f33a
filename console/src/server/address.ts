/** The page is `…/console/`; the API is what it stands below, with whatever prefix a proxy or `mount_prefix` has put there. */
export const apiUrl = new URL("..", new URL(".", location.href)).href.replace(/\/$/, "");

/** For links to other pages of the server. */
export const documentationUrl = `${apiUrl}/docs`;
