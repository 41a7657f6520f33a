/** The page is `…/console/` and the API is one level above, below any prefix of a proxy or `mount_prefix`. */
export const apiUrl = new URL("..", new URL(".", location.href)).href.replace(/\/$/, "");

export const documentationUrl = `${apiUrl}/docs`;
