// Rows of numbered names in short: as in the Python front (scenario/names.py), with which tests compare them.

const NUMBERED = /^(.*?)(\d+)(\.\d+)?$/s;

const numberOf = (name: string): number => Number(NUMBERED.exec(name)?.[2] ?? 0);

function withoutNumber(name: string): string {
  const match = NUMBERED.exec(name);
  return match ? `${match[1]}#${match[3] ?? ""}` : name;
}

/** Three or more names that differ in their number alone as a row, by that number; each other name by itself. */
export function inRows(names: Iterable<string>): string[][] {
  const alike = new Map<string, string[]>();
  for (const name of names) alike.set(withoutNumber(name), [...(alike.get(withoutNumber(name)) ?? []), name]);
  return [...alike.values()].flatMap((same) =>
    same.length > 2 ? [same.sort((a, b) => numberOf(a) - numberOf(b))] : same.map((name) => [name]));
}

/** A row by its first and its last name; of a row with gaps the number of names, too. */
export function ends(row: readonly string[]): string {
  const [first = "", last = ""] = [row[0], row.at(-1)];
  if (row.length === 1) return first;
  const isWhole = numberOf(last) - numberOf(first) === row.length - 1;
  return `${first} to ${last}${isWhole ? "" : ` (${row.length})`}`;
}

/** The dotted path of these steps: a name with a dot in it is quoted. */
export const join = (...steps: string[]): string => steps.map((step) => (step.includes(".") ? `"${step}"` : step)).join(".");
