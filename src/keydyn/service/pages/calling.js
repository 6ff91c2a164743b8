// Requests to the service, in the name of the page's session.

const SESSION = "keydyn.session";
const TRIES = 3;

/** Whatever is no success; `kind` is the last part of the problem's type. */
export class ServiceProblem extends Error {
  constructor(status, fields) {
    super([fields.title, fields.detail].filter(Boolean).join(": "));
    this.status = status;
    this.kind = (fields.type ?? "").split(":").at(-1);
    this.fields = fields;
  }
}

/** The session's token, null before there is one. */
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

  /** End it, here and at the service. */
  async close() {
    const { token } = this;
    this.forget();
    if (token) await request("DELETE", "/v1/session", undefined, token, 1);
  }

  forget() {
    this.#storage.removeItem(this.name);
  }

  /** Send a request; the answer, or a `ServiceProblem`. */
  call(method, path, body) {
    return request(method, path, body, this.token, TRIES);
  }
}

/** Where a person's resources are. */
export const userPath = (name, part = "") => `/v1/users/${encodeURIComponent(name)}${part}`;

/** Send a request with this token, up to so many times; the answer, or a `ServiceProblem`. */
export async function request(method, path, body, token, tries) {
  const headers = { "content-type": "application/json" };
  if (token) headers.authorization = `Bearer ${token}`;
  // Sent again after a lost connection, it has one effect.
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
        throw new ServiceProblem(0, { title: "The service cannot be reached", detail: "is it running?" });
      }
      await new Promise((resolve) => { setTimeout(resolve, 400 * tried); });
    }
  }
}

function randomKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
