// Overview of people, today's decisions and the service.

import { facts, message } from "./admin_parts.js";
import { element } from "./elements.js";

export const title = "Overview";

const JOBS = { fit: "templates to learn", migrate: "templates to learn again", webhook: "reports to deliver",
  "learn-population": "populations to learn" };

export async function view(service) {
  const now = service.now();
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const [standing, today, ready] = await Promise.all([
    service.get("/v1/standing"),
    service.get("/v1/decisions", { since: midnight, until: Math.max(now, midnight + 1), by: "hour" }),
    fetch("/readyz").then((answer) => answer.ok, () => false),
  ]);
  const count = { accept: 0, unsure: 0, reject: 0 };
  let locks = 0;
  for (const period of today.periods) {
    locks += period.locked;
    for (const answers of Object.values(period.verified))
      for (const [answer, number] of Object.entries(answers)) count[answer] += number;
  }
  const waiting = Object.entries(standing.jobs).map(([kind, number]) => `${number} ${JOBS[kind] ?? kind}`);
  return [
    element("h1", {}, title),
    ...needs(standing),
    element("section", { class: "card", "aria-labelledby": "people-now" },
      element("h2", { id: "people-now" }, "People"),
      facts([
        ["Known", standing.people],
        ["Enrolled", standing.enrolled],
        ["Must wait to try again", standing.delayed],
        ["No attempt left for now", standing.blocked],
        ["Should enrol again", standing.drifted],
      ])),
    element("section", { class: "card", "aria-labelledby": "today" },
      element("h2", { id: "today" }, "Today"),
      facts([
        ["Claims accepted", count.accept],
        ["Unsure", count.unsure],
        ["Rejected", count.reject],
        ["Sessions locked", locks],
        ["Sessions being watched", standing.watched],
        ["Locked now", standing.locked],
      ]),
      element("p", { class: "small muted" }, "A decision is a risk signal and a reason to ask for another factor, never the only factor.")),
    element("section", { class: "card", "aria-labelledby": "service" },
      element("h2", { id: "service" }, "Service"),
      facts([
        ["State", element("span", { class: `badge ${ready ? "good" : "bad"}` }, ready ? "working" : "the database does not respond")],
        ["Queued work", waiting.length ? waiting.join(", ") : "nothing"],
        ["Version", standing.version],
      ])),
  ];
}

/** A message about what needs an administrator's attention. */
function needs(standing) {
  const one = (number, single, several) => `${number} ${number === 1 ? single : several}`;
  const found = [
    standing.blocked && `${one(standing.blocked, "person has", "people have")} no attempt left for now: too many failed in the last 30 days, and strangers may have made them.`,
    standing.drifted && `${one(standing.drifted, "template has", "templates have")} drifted far from the enrolment: ask the person to enrol again.`,
    standing.locked && `${one(standing.locked, "watched session is", "watched sessions are")} locked.`,
  ].filter(Boolean);
  if (found.length === 0) return [];
  return [message("warn", "Needs attention", "", element("ul", { class: "points" }, found.map((each) => element("li", {}, each))))];
}
