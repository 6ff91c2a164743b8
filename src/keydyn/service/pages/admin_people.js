// The list of people, and the view of one person.

import { announce, confirmed, facts, labelled, moment, table } from "./admin_parts.js";
import { element } from "./elements.js";
import { guarded } from "./admin_service.js";
import { userPath } from "./calling.js";
import { ANSWERS, SAID, claimsChart } from "./admin_decisions.js";
import { nameOf, partOfId } from "./names.js";

export const title = "People";

const PAGE = 25;
// The most decisions about a person that are requested and that are listed, and the days of the chart.
const MOST = 200, LISTED = 20, DAYS = 30;
// From this drift on, a person should enrol again.
const DRIFTED = 0.7;
const WAYS = { free: "Any text", fixed: "Fixed text", positions: "Fixed text, positions only" };

export function view(service, name) {
  return name ? person(service, name) : list(service);
}

async function list(service) {
  const search = element("input", { id: "search", type: "search", maxlength: 128, autocomplete: "off", spellcheck: "false" });
  const results = element("div", { class: "stack" });
  const more = element("button", { type: "button", onclick: () => load(true) }, "Show more");
  let rows = [];
  let next = null;
  let asked = 0;

  async function load(further) {
    const turn = (asked += 1);
    const found = await service.get("/v1/users", { limit: PAGE, search: partOfId(search.value.trim()), cursor: further ? next : null });
    if (turn !== asked) return;
    rows = further ? [...rows, ...found.users] : found.users;
    next = found.next;
    const said = rows.length === 0 ? "Nobody was found." : `${rows.length} people${next ? ", and there are more" : ""}.`;
    results.replaceChildren(
      rows.length ? people(rows) : element("p", { class: "muted" }, search.value ? "No name or id contains this text." : "There are no people yet."),
      ...(next ? [element("div", {}, more)] : []));
    announce(said);
  }

  const form = element("form", { class: "tools", role: "search", onsubmit: (event) => { event.preventDefault(); guarded(results, () => load(false)); } },
    labelled("Part of a name or an id", search),
    element("button", {}, "Search"));
  await load(false);
  return [element("h1", {}, title), element("section", { class: "card", "aria-label": "Everybody" }, form, results)];
}

function people(rows) {
  return table("People, oldest first",
    [{ name: "Id", wraps: true }, { name: "Enrolment" }, { name: "Failed attempts" }, { name: "Template" }, { name: "Created" }],
    rows.map((one) => [
      element("a", { href: `#people/${encodeURIComponent(one.id)}` }, nameOf(one.id)),
      one.profiles.length ? one.profiles.map(progress) : "no samples yet",
      attempts(one),
      one.profiles.some((profile) => profile.drift >= DRIFTED) ? element("span", { class: "badge warn" }, "enrol again")
        : one.profiles.some((profile) => profile.template_at) ? element("span", { class: "badge good" }, "current") : "none yet",
      moment(one.created_at),
    ]));
}

function progress(profile) {
  const { samples, samples_needed: needed } = profile;
  const what = `${text(profile)}, ${profile.device}`;
  if (profile.complete) return element("div", {}, element("span", { class: "badge good" }, "complete"), ` ${what}`);
  return element("div", {}, `${samples} of ${needed} samples: ${what}`,
    element("progress", { max: needed, value: samples, "aria-label": `${samples} of ${needed} samples of ${what}` }));
}

function text(profile) {
  return profile.text.name ? `${WAYS[profile.text.kind].toLowerCase()} “${profile.text.name}”` : WAYS[profile.text.kind].toLowerCase();
}

function attempts(one) {
  if (one.wait_s > 0) return element("span", { class: "badge warn" }, `${one.failed_attempts}, must wait ${seconds(one.wait_s)}`);
  return String(one.failed_attempts);
}

function seconds(wait) {
  if (wait < 120) return `${wait} s`;
  return wait < 7200 ? `${Math.round(wait / 60)} min` : wait < 172800 ? `${Math.round(wait / 3600)} h` : `${Math.round(wait / 86400)} days`;
}

/** The decisions about claims to be a person, newest first, from entries of the audit log. */
function decisions(service, entries, name) {
  const more = element("p", {}, element("a", { href: `#audit/${encodeURIComponent(name)}` }, "All entries about this person in the audit log"));
  if (entries.length === 0) return element("section", { class: "card", "aria-labelledby": "decided" },
    element("h2", { id: "decided" }, "Decisions"), element("p", { class: "muted" }, "Nobody has claimed to be this person yet."), more);
  const today = new Date(service.now()).setHours(0, 0, 0, 0);
  const bars = Array.from({ length: DAYS }, (_, n) => {
    const from = new Date(today).setDate(new Date(today).getDate() - (DAYS - 1 - n)), until = new Date(from).setDate(new Date(from).getDate() + 1);
    const of = entries.filter(({ at }) => at >= from && at < until);
    return { at: from, values: ANSWERS.map((answer) => of.filter(({ details }) => details.answer === answer).length) };
  });
  const shown = entries.length === MOST ? `The last ${MOST} claims` : `${entries.length} ${entries.length === 1 ? "claim" : "claims"}`;
  return element("section", { class: "card", "aria-labelledby": "decided" },
    element("h2", { id: "decided" }, "Decisions"),
    element("p", {}, `${shown} to be this person; the bars show the last ${DAYS} days. The service does not know which were true.`),
    claimsChart(bars, "day", "Claims to be this person by day. The table below has each of them."),
    table("Claims, newest first", [{ name: "Time" }, { name: "Answer" }, { name: "Level" }],
      entries.slice(0, LISTED).map(({ at, details }) => [
        moment(at), SAID[details.answer],
        details.judged && details.judged !== details.level ? `${details.level}, judged at ${details.judged}` : details.level,
      ])),
    more);
}

const percent = (share) => Number((100 * share).toPrecision(2));

async function person(service, name) {
  const path = userPath(name);
  const said = element("div", { role: "alert" });
  const about = element("div", { class: "stack" });

  function fill(one) {
    about.replaceChildren(
      element("section", { class: "card", "aria-label": "State" }, facts([
        ["Created", moment(one.created_at)],
        ["Failed attempts in a row", one.failed_attempts],
        ["Takeover chance spent", `${percent(one.takeover_chance_spent)} of ${percent(settings.takeover_chance)} % in 30 days`],
        ["Next attempt", one.wait_s > 0 ? `in ${seconds(one.wait_s)}` : "any time"],
      ])),
      element("section", { class: "card", "aria-labelledby": "profiles" },
        element("h2", { id: "profiles" }, "Texts and devices"),
        one.profiles.length === 0 ? element("p", { class: "muted" }, "No sample has been enrolled yet.")
          : table("Profiles", [
            { name: "Text" }, { name: "Device" }, { name: "Enrolment" }, { name: "Keystrokes", number: true },
            { name: "Of known keys", number: true }, { name: "Clock" }, { name: "Template learnt" }, { name: "Drift", number: true },
          ], one.profiles.map((profile) => [
            text(profile), profile.device,
            profile.complete ? element("span", { class: "badge good" }, `complete, ${profile.samples} samples`) : `${profile.samples} of ${profile.samples_needed} samples`,
            profile.keystrokes, profile.known_keystrokes,
            profile.clock_tick_ms ? `ticks of ${Number(profile.clock_tick_ms.toPrecision(2))} ms` : "fine",
            profile.template_at ? moment(profile.template_at) : "not yet",
            profile.drift >= DRIFTED ? element("span", { class: "badge warn" }, `${profile.drift.toFixed(2)}, enrol again`) : profile.drift.toFixed(2),
          ])),
        element("p", { class: "small muted" }, `Drift says how far a template has moved with its owner’s typing since enrolment, from 0 to 1. At ${DRIFTED} or more, the person should enrol again.`)));
  }

  async function act(done, action) {
    said.replaceChildren();
    await guarded(said, async () => {
      await action();
      announce(done);
    });
  }

  const unblock = () => act("Failed attempts are cleared.", async () => fill(await service.post(userPath(name, "/unblock"))));
  const reset = async () => {
    if (await confirmed("Start enrolment again?", "The samples and templates are deleted, and the person has to enrol again. Copies of earlier samples are still recognised.", "Start again"))
      await act("Enrolment starts again.", async () => fill(await service.post(userPath(name, "/reset"))));
  };
  const exported = () => act("The export was saved.", async () => {
    const everything = await service.get(userPath(name, "/export"));
    const address = URL.createObjectURL(new Blob([JSON.stringify(everything, null, 1)], { type: "application/json" }));
    element("a", { href: address, download: `${nameOf(name)}.json` }).click();
    URL.revokeObjectURL(address);
  });
  const erase = async () => {
    if (await confirmed("Erase this person?", "Everything that is stored about them is deleted, and so is the key that it is encrypted with. This cannot be undone.", "Erase", nameOf(name)))
      await act("The person was erased.", async () => {
        await service.delete(path);
        location.hash = "#people";
      });
  };
  const claims = { user: name, action: "verified", limit: MOST };
  const [settings, one, { entries }] = await Promise.all([
    service.get("/v1/settings"), service.get(path), service.get("/v1/audit", claims),
  ]);
  fill(one);
  const decided = decisions(service, entries, name);
  return [
    element("div", { class: "stack close" },
      element("a", { href: "#people" }, "← Everybody"),
      element("h1", { class: "name" }, nameOf(name)),
      nameOf(name) === name ? null : element("p", { class: "muted small" }, "Id ", element("code", {}, name))),
    said, about, decided,
    element("section", { class: "card", "aria-labelledby": "actions" },
      element("h2", { id: "actions" }, "Actions"),
      element("div", { class: "row" },
        element("button", { type: "button", onclick: unblock }, "Clear failed attempts"),
        element("button", { type: "button", onclick: exported }, "Export everything"),
        element("button", { type: "button", onclick: reset }, "Start enrolment again"),
        element("button", { type: "button", class: "danger", onclick: erase }, "Erase"))),
  ];
}
