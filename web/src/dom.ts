// Elements of the page, in one line each. Text is always text, never markup.

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

export function byId<Made extends HTMLElement = HTMLElement>(id: string): Made {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no element ${id}`);
  return found as Made;
}

/** Calls once nothing was asked for as long as this. */
export function after<Args extends unknown[]>(ms: number, act: (...args: Args) => void): (...args: Args) => void {
  let waiting: ReturnType<typeof setTimeout> | undefined;
  return (...args) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => act(...args), ms);
  };
}
