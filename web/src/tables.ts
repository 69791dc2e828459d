// Result tables as the engine writes them: see crates/wasm/src/answer.rs.

interface Described {
  tables: { name: string; rows: number; columns: { name: string; words?: string[] }[] }[];
  not_attributed: string | null;
  untraced: number;
  rejected_actions: number;
}

interface Column {
  values: Float64Array;
  words: string[] | undefined;
}

/** A result table: its columns are views of the answer. */
export class Table {
  constructor(
    readonly name: string,
    readonly rows: number,
    readonly columns: ReadonlyMap<string, Column>,
  ) {}

  numbers(name: string): Float64Array {
    return this.column(name).values;
  }

  number(name: string, row: number): number | null {
    const value = this.numbers(name)[row];
    return value === undefined || Number.isNaN(value) ? null : value;
  }

  text(name: string, row: number): string {
    const { values, words } = this.column(name);
    return words?.[values[row] ?? -1] ?? "";
  }

  /** A value as it is written to a file. */
  cell(name: string, row: number): string {
    const value = this.number(name, row);
    if (value === null) return "";
    return this.column(name).words ? this.text(name, row) : String(value);
  }

  private column(name: string): Column {
    const found = this.columns.get(name);
    if (found === undefined) throw new Error(`${this.name} has no column ${name}`);
    return found;
  }
}

/** All tables of one replication. */
export class Tables {
  readonly notAttributed: string | null;
  readonly untraced: number;
  private readonly tables = new Map<string, Table>();

  constructor(answer: ArrayBuffer) {
    const end = new Uint8Array(answer).indexOf(10) + 1;
    const said = JSON.parse(new TextDecoder().decode(new Uint8Array(answer, 0, end))) as Described;
    let at = end;
    for (const { name, rows, columns } of said.tables) {
      const found = new Map<string, Column>();
      for (const column of columns) {
        found.set(column.name, { values: new Float64Array(answer, at, rows), words: column.words });
        at += 8 * rows;
      }
      this.tables.set(name, new Table(name, rows, found));
    }
    this.notAttributed = said.not_attributed;
    this.untraced = said.untraced;
  }

  get names(): string[] {
    return [...this.tables.keys()];
  }

  of(name: string): Table {
    const found = this.tables.get(name);
    if (found === undefined) throw new Error(`no table ${name}`);
    return found;
  }
}
