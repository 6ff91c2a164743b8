// Names of people, which may be any text, are written as ids, which allow only ASCII letters, digits and a few signs.
// Other characters are written as numbers between tildes: "Ana Sá" is "Ana~20~S~e1~".

const LONGEST_NAME = 64, LONGEST_ID = 128;
// The prefix of a name that does not begin with a letter or digit, as an id must.
const OTHERWISE = "x~~";

/** A name with its spaces tidied; an error if nothing is left, or it is too long or has invisible characters. */
export function cleaned(name) {
  const found = name.normalize("NFC").replace(/[\s\p{Z}]+/gu, " ").trim();
  if (!found) throw new Error("Enter a name.");
  if (/\p{C}/u.test(found)) throw new Error("This name has characters that cannot be shown.");
  if ([...found].length > LONGEST_NAME || encoded(found).length > LONGEST_ID) {
    throw new Error("This name is too long. Use a shorter one.");
  }
  return found;
}

/** The id of the person of this name. */
export const idOf = (name) => encoded(cleaned(name));

/** The id that was entered, as itself or as a name. */
export const idGiven = (text) => (/^[A-Za-z0-9][A-Za-z0-9._~@+-]*$/.test(text) ? text : idOf(text));

/** A part of a name as it appears in ids, whatever follows it. */
export const partOfId = (text) => spelled(text).replace(/~$/, "");

/** The name of the person with this id; the id itself if it was not made from a name. */
export function nameOf(id) {
  const numbers = (_, run) => String.fromCodePoint(...run.split(".").map((each) => parseInt(each, 16)));
  try {
    const name = (id.startsWith(OTHERWISE) ? id.slice(OTHERWISE.length) : id).replace(/~([0-9a-f.]+)~/g, numbers);
    return idOf(name) === id ? name : id;
  } catch {
    return id;
  }
}

function spelled(text) {
  return text.replace(/[^A-Za-z0-9._@+-]+/gu, (run) => `~${[...run].map((each) => each.codePointAt(0).toString(16)).join(".")}~`);
}

function encoded(name) {
  const id = spelled(name);
  return /^[A-Za-z0-9]/.test(id) ? id : OTHERWISE + id;
}
