// dom.ts - elements in few words.  Text only ever becomes text nodes, never markup.

export type Child = Node | string | false | undefined;

type Attributes = Record<string, string | boolean | ((event: Event) => void)>;

/** An element: strings become attributes, functions listeners ("click": …). */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child): child is Node | string => child !== undefined && child !== false));
  return element;
}

/** The same element with styles set; the page's policy forbids style attributes. */
export function styled<E extends HTMLElement>(element: E, styles: Record<string, string>): E {
  for (const [name, value] of Object.entries(styles)) element.style.setProperty(name, value);
  return element;
}

/** Calls back with the element's width, once it is laid out and whenever it changes. */
export function onWidth(element: HTMLElement, call: (width: number) => void): void {
  let last = -1;
  new ResizeObserver(() => {
    const width = Math.floor(element.clientWidth);
    if (width === last || width === 0) return;
    last = width;
    call(width);
  }).observe(element);
}

let names = 0;

/** A name no other element has, to tie a label to its control. */
export function uniqueName(): string {
  return `n${++names}`;
}
