// Requests to the service, in the name of the page's session.

const SESSION = "keydyn.session";
const TRIES = 3;

/** A problem that the service answered with; `kind` is the last part of its type. */
export class ServiceProblem extends Error {
  constructor(status, fields) {
    super([fields.title, fields.detail].filter(Boolean).join(": "));
    this.status = status;
    this.kind = (fields.type ?? "").split(":").at(-1);
    this.fields = fields;
  }
}

/** A session with the service; its token is null until it is opened. */
export class Session {
  #storage;

  constructor(storage, name = SESSION) {
    this.#storage = storage;
    this.name = name;
  }

  get token() {
    return this.#storage.getItem(this.name);
  }

  /** Exchange a link, {link}, or an API key, {key}, for a session. */
  async open(by) {
    const found = await request("POST", "/v1/session", by, null, 1);
    this.#storage.setItem(this.name, found.token);
  }

  /** End the session, here and at the service. */
  async close() {
    const { token } = this;
    this.forget();
    if (token) await request("DELETE", "/v1/session", undefined, token, 1);
  }

  forget() {
    this.#storage.removeItem(this.name);
  }

  /** Send a request; returns the answer or throws a `ServiceProblem`. */
  call(method, path, body) {
    return request(method, path, body, this.token, TRIES);
  }
}

/** The path of a person's resources. */
export const userPath = (name, part = "") => `/v1/users/${encodeURIComponent(name)}${part}`;

/** Send a request with this token, up to `tries` times; returns the answer or throws a `ServiceProblem`. */
export async function request(method, path, body, token, tries) {
  const headers = { "content-type": "application/json" };
  if (token) headers.authorization = `Bearer ${token}`;
  // With this key, a request that is sent again after a lost connection has only one effect.
  if (method !== "GET") headers["idempotency-key"] = randomKey();
  for (let tried = 1; ; tried += 1) {
    try {
      const answer = await fetch(path, { method, headers, body: JSON.stringify(body), cache: "no-store" });
      const fields = answer.status === 204 ? {} : await answer.json();
      if (answer.ok) return fields;
      throw new ServiceProblem(answer.status, fields);
    } catch (error) {
      if (error instanceof ServiceProblem && error.status !== 503) throw error;
      if (tried === tries) {
        if (error instanceof ServiceProblem) throw error;
        throw new ServiceProblem(0, { title: "The service cannot be reached", detail: "Is it running?" });
      }
      await new Promise((resolve) => { setTimeout(resolve, 400 * tried); });
    }
  }
}

function randomKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
