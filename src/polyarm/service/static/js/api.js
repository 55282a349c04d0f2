// The server's HTTP interface: JSON in, JSON out, problem documents as errors.

/** What the server refused, in its words; `errors` name the fields. Status 0: it could not be reached. */
export class ApiError extends Error {
  constructor(status, title, detail, errors = []) {
    super(detail);
    this.name = "ApiError";
    this.status = status;
    this.title = title;
    this.errors = errors;
  }
}

let csrf = null;

export async function getSession() {
  return remember(await request("GET", "/session"));
}

export async function signIn(token) {
  return remember(await request("POST", "/session", { body: { token } }));
}

export async function signOut() {
  await request("DELETE", "/session");
  csrf = null;
}

export function getExplorers(signal) {
  return request("GET", "/explorers", { signal });
}

export function getStudies(signal) {
  return request("GET", "/studies", { signal });
}

export function createStudy(document) {
  return request("POST", "/studies", { body: document });
}

export function getView(id, signal) {
  return request("GET", `${studyPath(id)}/view`, { signal });
}

export function getLog(id, last, signal) {
  return request("GET", `${studyPath(id)}/log?last=${last}`, { signal });
}

export function changeStudy(id, action, body) {
  return request("POST", `${studyPath(id)}/${action}`, { body });
}

/** The document as it was sent: read and written again, its large integers would not be what its checksum covers. */
export async function getCertificate(id) {
  return (await send("GET", `${studyPath(id)}/certificate`)).blob();
}

export function studyPath(id) {
  return `/studies/${encodeURIComponent(id)}`;
}

// The server ties changes to the session that reads the page, so that other sites cannot make them in its name.
function remember(session) {
  csrf = session.csrf;
  return session;
}

async function request(method, path, options) {
  const response = await send(method, path, options);
  return response.status === 204 ? null : response.json();
}

async function send(method, path, { body, signal } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && csrf !== null) headers["X-CSRF-Token"] = csrf;
  let response;
  try {
    const text = body === undefined ? undefined : JSON.stringify(body);
    response = await fetch(path, { method, headers, signal, body: text });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "Server not reached", "The server cannot be reached. Is `polyarm serve` still running?");
  }
  if (!response.ok) throw await readProblem(response);
  return response;
}

async function readProblem(response) {
  const problem = await response.json().catch(() => ({}));
  const { title = `Error ${response.status}`, detail = `The server answered ${response.status}.`, errors } = problem;
  return new ApiError(response.status, title, detail, errors);
}
