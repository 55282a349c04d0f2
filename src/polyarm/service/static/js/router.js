// Which page an address stands for. Routes live behind the `#`, so the server has one page to serve.

/** Returns {page: "list" | "new" | "study" | "unknown", id}. */
export function readRoute(hash) {
  const path = hash.replace(/^#/, "") || "/";
  const study = /^\/study\/(\d+)$/.exec(path);
  if (study) return { page: "study", id: study[1] };
  if (path === "/") return { page: "list" };
  if (path === "/new") return { page: "new" };
  return { page: "unknown" };
}

export function studyRoute(id) {
  return `#/study/${encodeURIComponent(id)}`;
}
