// Requests of the administration to the service, in a session opened with an admin key or in the page's session.

import { announce, message } from "./admin_parts.js";
import { ServiceProblem, Session } from "./calling.js";

// Where this tab notes that it uses the session of the page.
const SHARED = "keydyn.admin.shared";

/** A session of this tab, which ends by itself after an hour, or the one that a link opened for the page. */
export class Service {
  #own = new Session(sessionStorage, "keydyn.admin");
  #page = new Session(localStorage);
  /** Called when the session has ended. */
  ended = () => {};
  /** How far the service's clock is ahead of the browser's, milliseconds. */
  ahead = 0;

  get #session() {
    return sessionStorage.getItem(SHARED) ? this.#page : this.#own;
  }

  get pageIsOpen() {
    return this.#page.token !== null;
  }

  get signedIn() {
    return this.#session.token !== null;
  }

  /** The time, by the service's clock. */
  now() {
    return Date.now() + this.ahead;
  }

  /** Exchange a key for a session; the key itself is not kept. */
  signIn(key) {
    return this.#session.open({ key });
  }

  /** Use the session of the page in this browser. */
  sharePage() {
    sessionStorage.setItem(SHARED, "yes");
  }

  /** End the session, here and at the service, even if it is that of the page. */
  async signOut() {
    const session = this.#session;
    sessionStorage.removeItem(SHARED);
    await session.close().catch(() => {});
  }

  get(path, query = {}) {
    const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== ""));
    return this.#call("GET", asked.size ? `${path}?${asked}` : path);
  }

  post(path, body) {
    return this.#call("POST", path, body);
  }

  put(path, body) {
    return this.#call("PUT", path, body);
  }

  delete(path) {
    return this.#call("DELETE", path);
  }

  async #call(method, path, body) {
    try {
      return await this.#session.call(method, path, body);
    } catch (problem) {
      if (problem.status === 401 && this.signedIn) {
        this.#session.forget();
        sessionStorage.removeItem(SHARED);
        this.ended();
      }
      throw problem;
    }
  }
}

/** A problem as a message; other errors are rethrown. */
export function complaint(problem, before = "") {
  if (!(problem instanceof ServiceProblem)) throw problem;
  return message("bad", `${before}${problem.fields.title}`, problem.fields.detail);
}

/** Run an action, and show a problem in the given place. */
export async function guarded(place, action) {
  try {
    await action();
  } catch (problem) {
    place.replaceChildren(complaint(problem));
    announce(problem.fields.title);
  }
}
