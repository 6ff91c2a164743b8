// Making elements: what comes from the network is text, never markup.

export const find = (id) => document.getElementById(id);

/**
 * An element with attributes and children; children that are not elements are shown as text. Lists of children
 * are taken one by one, and null is left out. An attribute that is a function ("onclick") listens, one that is
 * true is there without a value, and one that is null, undefined or false is not there.
 */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same of SVG. */
export function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** An element that has these attributes and children too. */
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

/** Let an element say something, or hide it if there is nothing to say. */
export function say(id, words) {
  const place = find(id);
  place.textContent = words ?? "";
  place.hidden = !words;
}
