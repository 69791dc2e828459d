// A scenario in a link: compressed, in the fragment, which browsers send nowhere. The policies in Python that it names come along.

/** The longest text that a link may hold, bytes: what is unpacked beyond it is not kept. */
export const BYTES_MAX = 1_000_000;
/** A compressed piece of this length holds a thousand times as much at most: that is looked at before the next one. */
const PIECE = 1024;

/** What a link holds. */
export interface Shared {
  text: string;
  /** The policies in Python; none: the scenario names none. */
  policies: string | null;
}

/** The fragment of a link; none: it would be too long to be read again. */
export async function linkTo({ text, policies }: Shared): Promise<string | null> {
  const parts = [text, ...(policies === null ? [] : [policies])];
  const encoded = parts.map((part) => new TextEncoder().encode(part));
  if (encoded.some(({ length }) => length > BYTES_MAX)) return null;
  const [scenario, code] = await Promise.all(encoded.map(pack));
  return `#s=${scenario}${code === undefined ? "" : `&py=${code}`}`;
}

/** Does the fragment say that it holds a scenario? */
export const isLink = (fragment: string): boolean => fragment.startsWith("#s=");

/** What the fragment of a link holds; nothing, if it is broken or too long. */
export async function read(fragment: string): Promise<Shared | null> {
  const [, scenario, code] = /^#s=([^&]+)(?:&py=(.+))?$/.exec(fragment) ?? [];
  const text = scenario === undefined ? null : await unpack(scenario);
  const policies = code === undefined ? null : await unpack(code);
  return text === null || (code !== undefined && policies === null) ? null : { text, policies };
}

async function pack(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const packed = await through(bytes, new CompressionStream("deflate-raw"), Infinity);
  const letters = Array.from(packed, (byte) => String.fromCharCode(byte)).join("");
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpack(packed: string): Promise<string | null> {
  try {
    const letters = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const unpacked = await through(bytes, new DecompressionStream("deflate-raw"), BYTES_MAX);
    return new TextDecoder("utf-8", { fatal: true }).decode(unpacked);
  } catch {
    return null;
  }
}

/** What comes out of a stream, of which at most so many bytes are taken. */
async function through(bytes: Uint8Array<ArrayBuffer>, stream: GenericTransformStream, most: number): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  const reader = inPieces(bytes).pipeThrough(stream as ReadableWritablePair<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > most) {
      await reader.cancel();
      throw new RangeError(`longer than ${most} bytes`);
    }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

function inPieces(bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = 0;
  return new ReadableStream({
    pull(stream) {
      if (at >= bytes.length) stream.close();
      else stream.enqueue(bytes.subarray(at, (at += PIECE)));
    },
  });
}
