// Means over replications with Student's intervals, and Student's test of paired differences: as in the Python front
// (results/statistics.py), with which tests compare them.

const CONFIDENCE = 0.95;

export interface Interval {
  mean: number;
  /** None: one value alone has no interval. */
  half: number | null;
  n: number;
}

/** The mean with its 95 % confidence interval; missing values do not count. */
export function interval(values: Iterable<number | null>): Interval | null {
  const present = [...values].filter((value) => value !== null);
  const n = present.length;
  const first = present[0];
  if (first === undefined) return null;
  const mean = first + total(present.map((value) => value - first)) / n;
  if (n === 1) return { mean, half: null, n };
  const deviation = Math.sqrt(total(present.map((value) => (value - mean) ** 2)) / (n - 1));
  return { mean, half: (quantile(n - 1) * deviation) / Math.sqrt(n), n };
}

/** The sum, rounded once, as Python's `fsum` has it (Shewchuk 1997, "Adaptive precision floating-point arithmetic"). */
export function total(values: Iterable<number>): number {
  // Numbers that do not overlap, the least first; their sum is exact.
  let parts: number[] = [];
  for (const value of values) {
    let high = value;
    const lows: number[] = [];
    for (const part of parts) {
      const [larger, smaller] = Math.abs(high) < Math.abs(part) ? [part, high] : [high, part];
      high = larger + smaller;
      const low = smaller - (high - larger);
      if (low !== 0) lows.push(low);
    }
    parts = [...lows, high];
  }
  let sum = parts.pop() ?? 0;
  while (parts.length > 0) {
    const part = parts.pop() ?? 0;
    const before = sum;
    sum += part;
    const low = part - (sum - before);
    if (low === 0) continue;
    // In the middle between two numbers, what is left decides.
    const next = parts.at(-1) ?? 0;
    const twice = sum + 2 * low;
    return low * next > 0 && twice - sum === 2 * low ? twice : sum;
  }
  return sum;
}

export interface Difference {
  interval: Interval;
  /** The probability of such a difference if there were none; none: one pair alone. */
  p: number | null;
}

/** The mean of paired differences. */
export function paired(pairs: readonly (readonly [number, number])[]): Difference | null {
  const found = interval(pairs.map(([after, before]) => after - before));
  if (found === null) return null;
  if (found.half === null) return { interval: found, p: null };
  if (found.half === 0) return { interval: found, p: found.mean === 0 ? 1 : 0 };
  const error = found.half / quantile(found.n - 1);
  return { interval: found, p: outside(found.mean / error, found.n - 1) };
}

/** Probabilities corrected for the number of tests (Holm 1979). */
export function holm(ps: readonly number[]): number[] {
  const corrected = new Array<number>(ps.length).fill(0);
  const order = ps.map((p, index) => ({ p, index })).sort((a, b) => a.p - b.p);
  let least = 0;
  order.forEach(({ p, index }, done) => {
    least = Math.max(least, Math.min(1, (ps.length - done) * p));
    corrected[index] = least;
  });
  return corrected;
}

const quantiles = new Map<number, number>();

/** The quantile of Student's t that 2.5 % are above. */
export function quantile(degrees: number): number {
  let found = quantiles.get(degrees);
  if (found === undefined) {
    let [low, high] = [0, 1e3];
    for (let i = 0; i < 100; i++) {
      const middle = (low + high) / 2;
      if (outside(middle, degrees) > 1 - CONFIDENCE) low = middle;
      else high = middle;
    }
    found = (low + high) / 2;
    quantiles.set(degrees, found);
  }
  return found;
}

/** The probability that Student's t is at least as far from 0. */
function outside(t: number, degrees: number): number {
  return incompleteBeta(degrees / (degrees + t * t), degrees / 2, 0.5);
}

/** The regularised incomplete beta function, by Lentz's continued fraction (Press et al., "Numerical Recipes", 6.4). */
function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
  const least = 1e-300;
  let c = 1;
  let d = 1 / Math.max(least, 1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m < 300; m++) {
    for (const step of [
      (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
      (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)),
    ]) {
      d = 1 + step * d;
      d = 1 / (Math.abs(d) < least ? least : d);
      c = 1 + step / c;
      c = Math.abs(c) < least ? least : c;
      fraction *= d * c;
    }
    if (Math.abs(d * c - 1) < 1e-15) break;
  }
  return front * fraction;
}

/** Lanczos' approximation. */
function logGamma(x: number): number {
  const terms = [
    676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406, 12.507343278686905,
    -0.13857109526572012, 9.984369578019572e-6, 1.5056327351493116e-7,
  ];
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  const t = x + 6.5;
  const sum = terms.reduce((total, term, index) => total + term / (x + index), 0.9999999999998099);
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

/** The value with three significant digits. */
export function written(value: number): string {
  return value ? fixed(value, decimals(value, 3)) : "0";
}

/** A mean and its interval, to two digits of the interval. */
export function spread({ mean, half }: Interval): string {
  if (half === null) return written(mean);
  if (half === 0) return `${written(mean)} ± 0`;
  const places = Math.min(decimals(half, 2), decimals(mean, 5));
  return `${fixed(mean, places)} ± ${fixed(half, places)}`;
}

function decimals(value: number, digits: number): number {
  if (value === 0) return 6;
  return Math.max(0, Math.min(6, digits - 1 - Math.floor(Math.log10(Math.abs(value)))));
}

/** So many decimals; what is exactly in the middle is rounded to the even digit, as Python does. */
function fixed(value: number, places: number): string {
  const rounded = value.toFixed(places);
  if (Math.abs(value) >= 1e15) return rounded;
  const exact = value.toFixed(100);
  const end = exact.indexOf(".") + 1 + places;
  const isMiddle = /^50*$/.test(exact.slice(end));
  return isMiddle && /[13579]$/.test(rounded) ? exact.slice(0, places === 0 ? end - 1 : end) : rounded;
}
