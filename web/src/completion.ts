// Words that may stand at the cursor: fields and values from the schema, parameters from the scheduler in use.

import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { Fields, Json, Param } from "./scenario";

export type Completer = (context: CompletionContext) => CompletionResult | null;

/** The parts of a dotted key. */
const parts = (key: string): string[] => [...key.matchAll(/"([^"]*)"|([\w-]+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "");

/** The table that a place is in, and what of its line is before it. */
function placed(before: string): { path: string[]; rest: string } {
  const lines = before.split("\n");
  const line = lines.pop() ?? "";
  const header = lines.findLast((one) => /^\s*\[/.test(one)) ?? "";
  const path = parts(/^\s*\[+([^\]]*)/.exec(header)?.[1] ?? "");
  // Inline tables that are open.
  let rest = line;
  const open: string[][] = [];
  for (let i = 0, key: string[] = [], start = 0; i < line.length; i++) {
    if (line[i] === "#" && (line.slice(0, i).match(/"/g)?.length ?? 0) % 2 === 0) break;
    if (line[i] === "=") key = parts(line.slice(start, i));
    if (line[i] === "{") { open.push(key); start = i + 1; }
    if (line[i] === ",") start = i + 1;
    if (line[i] === "}") { open.pop(); start = i + 1; }
    if (open.length > 0) rest = line.slice(start, i + 1);
  }
  return { path: [...path, ...open.flat()], rest: open.length > 0 && /[{,]$/.test(line.trimEnd()) ? "" : rest };
}

export function completer(schema: Fields, params: () => readonly Param[]): Completer {
  const definitions = (schema["$defs"] ?? {}) as Record<string, Fields>;
  const resolved = (node: Json | undefined): Fields[] => {
    if (node === null || typeof node !== "object" || Array.isArray(node)) return [];
    const named = typeof node["$ref"] === "string" ? resolved(definitions[node["$ref"].split("/").pop() ?? ""]) : [];
    const either = [node["anyOf"], node["oneOf"], node["allOf"]].flatMap((some) => (Array.isArray(some) ? some.flatMap(resolved) : []));
    return [node, ...named, ...either];
  };
  const below = (nodes: Fields[], name: string): Fields[] => nodes.flatMap((node) => {
    const properties = (node["properties"] ?? {}) as Fields;
    if (properties[name] !== undefined) return resolved(properties[name]);
    if (node["items"] !== undefined) return below(resolved(node["items"]), name);
    return resolved(node["additionalProperties"]);
  });
  const found = (path: string[]): Fields[] => path.reduce(below, resolved(schema));
  const itemsOf = (nodes: Fields[]): Fields[] => nodes.flatMap((node) => [node, ...resolved(node["items"])]);

  return (context) => {
    const { path, rest } = placed(context.state.sliceDoc(0, context.pos));
    const value = /^\s*([\w."-]+)\s*=\s*\[?\s*("?[\w.-]*)$/.exec(rest);
    if (value !== null) {
      const words = itemsOf(found([...path, ...parts(value[1] ?? "")])).flatMap((node) => [
        ...(Array.isArray(node["enum"]) ? node["enum"] : []), ...(node["const"] === undefined ? [] : [node["const"]]),
        ...(node["type"] === "boolean" ? [true, false] : []),
      ]);
      const options: Completion[] = [...new Set(words)].map((word) => ({ label: JSON.stringify(word), type: "enum" }));
      return options.length ? { from: context.pos - (value[2] ?? "").length, options } : null;
    }
    const key = /^\s*([\w-]*)$/.exec(rest);
    if (key === null || (key[1] === "" && !context.explicit)) return null;
    const options = new Map<string, Completion>();
    for (const node of itemsOf(found(path))) {
      for (const [label, field] of Object.entries((node["properties"] ?? {}) as Record<string, Fields>)) {
        options.set(label, { label, type: "property", apply: `${label} = `, info: String(field["description"] ?? "") });
      }
    }
    const scope = path[0] === "host" ? "global" : path[0] === "domain" && path.length === 2 ? "domain" : "";
    for (const param of params().filter((one) => one.scope === scope)) {
      options.set(param.name, { label: param.name, type: "variable", apply: `${param.name} = `, info: `${param.doc} Allowed: ${param.allowed}.` });
    }
    return { from: context.pos - (key[1] ?? "").length, options: [...options.values()] };
  };
}
