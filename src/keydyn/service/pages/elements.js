// Making elements; what comes from the network is inserted as text, never as markup.

export const find = (id) => document.getElementById(id);

/**
 * An element with attributes and children. Children that are not elements become text, lists of children are
 * flattened, and null is left out. An attribute that is a function ("onclick") becomes a listener, one that is
 * true has no value, and one that is null, undefined or false is left out.
 */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element, made as `element` makes one of HTML. */
export function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** Add attributes and children to an element, and return it. */
export function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if ((value ?? false) !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null));
  return made;
}

/** Show one of several elements, and hide the others. */
export function showOnly(ids, shown) {
  for (const id of ids) find(id).hidden = id !== shown;
}

/** Show a text in an element, or hide the element if there is none. */
export function say(id, words) {
  const place = find(id);
  place.textContent = words ?? "";
  place.hidden = !words;
}
