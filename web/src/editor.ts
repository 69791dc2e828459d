// Text that is edited: CodeMirror. Of the scenario with the engine's own problems, and words from the schema; of policies as it is.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, undo } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, bracketMatching, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { python } from "@codemirror/legacy-modes/mode/python";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { EditorState, type Extension, type Text } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Completer } from "./completion";
import type { Checked, Problem } from "./scenario";

const COLOURS = HighlightStyle.define([
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: tags.string, color: "var(--string)" },
  { tag: [tags.number, tags.bool, tags.atom], color: "var(--number)" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--key)" },
  { tag: [tags.heading, tags.keyword, tags.typeName], color: "var(--accent)", fontWeight: "bold" },
]);

const MODES = { toml, python };

export class Editor {
  private readonly view: EditorView;
  private readonly extensions: Extension;
  private isOurs = false;

  constructor(parent: HTMLElement, mode: keyof typeof MODES, label: string, complete: Completer | null, changed: (text: string) => void) {
    this.extensions = [
      lineNumbers(), history(), drawSelection(), highlightActiveLine(), bracketMatching(), closeBrackets(), lintGutter(),
      StreamLanguage.define(MODES[mode]), syntaxHighlighting(COLOURS), indentUnit.of("    "),
      ...(complete === null ? [] : [autocompletion({ override: [complete] })]),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
      EditorView.contentAttributes.of({ "aria-label": `${label} Escape, then Tab leaves the editor.` }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged && !this.isOurs) changed(this.text);
      }),
    ];
    this.view = new EditorView({ parent, state: EditorState.create({ extensions: this.extensions }) });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  /** Another text: nothing of the one before can be taken back. */
  open(text: string): void {
    this.view.setState(EditorState.create({ doc: text, extensions: this.extensions }));
  }

  /** Replaces what differs, so that the cursor stays where it is. */
  set text(text: string) {
    const old = this.text;
    if (text === old) return;
    let from = 0;
    while (from < old.length && from < text.length && old[from] === text[from]) from++;
    let [to, end] = [old.length, text.length];
    while (to > from && end > from && old[to - 1] === text[end - 1]) [to, end] = [to - 1, end - 1];
    this.isOurs = true;
    this.view.dispatch({ changes: { from, to, insert: text.slice(from, end) } });
    this.isOurs = false;
  }

  /** Takes back the last change, whoever made it. */
  undo(): void {
    undo(this.view);
  }

  show({ problems, warnings }: Checked): void {
    const { doc } = this.view.state;
    const found = [
      ...problems.map((problem) => diagnostic(doc, problem, "error")),
      ...warnings.map((problem) => diagnostic(doc, problem, "warning")),
    ];
    this.view.dispatch(setDiagnostics(this.view.state, found.sort((a, b) => a.from - b.from)));
  }

  go({ line, column }: Problem): void {
    const { doc } = this.view.state;
    const at = Math.min(doc.length, doc.line(Math.min(doc.lines, line ?? 1)).from + (column ?? 1) - 1);
    this.view.dispatch({ selection: { anchor: at }, scrollIntoView: true });
    this.view.focus();
  }
}

export function said({ field, message, hint }: Problem): string {
  return `${field === null ? "" : `${field}: `}${message}${hint === null ? "" : ` (hint: ${hint})`}`;
}

function diagnostic(doc: Text, problem: Problem, severity: Diagnostic["severity"]): Diagnostic {
  const line = doc.line(Math.min(doc.lines, Math.max(1, problem.line ?? 1)));
  const from = Math.min(line.to, line.from + (problem.column ?? 1) - 1);
  const found = problem.found !== null && doc.sliceString(from, from + problem.found.length) === problem.found;
  return { from, to: found ? from + (problem.found ?? "").length : line.to, severity, message: said(problem) };
}
