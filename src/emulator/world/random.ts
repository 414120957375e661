/** The state of a seeded generator. */
export interface RandomState {
  value: number;
}

const UINT32 = 0x1_0000_0000;
const FNV_PRIME = 0x01000193;

export function createRandom(seed: number): RandomState {
  return { value: seed >>> 0 };
}

/** The next number in [0, 1) (mulberry32). */
export function nextRandom(random: RandomState): number {
  random.value = (random.value + 0x6d2b79f5) >>> 0;
  let mixed = random.value;
  mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / UINT32;
}

/** A hash of a text, for seeds (FNV-1a with `seed` as its start value). */
export function hashText(text: string, seed: number): number {
  let hash = seed;
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), FNV_PRIME);
  return hash;
}

/** An integer from `min` to `max`, both included. */
export function nextInteger(random: RandomState, min: number, max: number): number {
  return min + Math.floor(nextRandom(random) * (max - min + 1));
}

export function pick<A extends readonly [unknown, ...unknown[]]>(random: RandomState, items: A): A[number] {
  return items[nextInteger(random, 0, items.length - 1)];
}

/** A UUID of version 4, the same for equal seeds. */
export function nextUuid(random: RandomState): string {
  const words = Array.from({ length: 4 }, () => Math.floor(nextRandom(random) * UINT32));
  const hex = words.map((word) => word.toString(16).padStart(8, '0')).join('');
  const variant = (8 + (Number.parseInt(hex.charAt(16), 16) % 4)).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

const TOKEN_ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789';

const TOKEN_LENGTH = 64;

/** A key in the platform's form: `napi_` and 64 lower-case letters and digits. */
export function nextToken(random: RandomState): string {
  const characters = Array.from({ length: TOKEN_LENGTH }, () =>
    TOKEN_ALPHABET.charAt(nextInteger(random, 0, TOKEN_ALPHABET.length - 1)),
  );
  return `napi_${characters.join('')}`;
}

const ADJECTIVES = [
  'ancient',
  'bold',
  'calm',
  'dry',
  'fancy',
  'gentle',
  'icy',
  'late',
  'misty',
  'quiet',
  'royal',
  'young',
] as const;
const NOUNS = ['bird', 'brook', 'cloud', 'dew', 'field', 'fog', 'hill', 'lake', 'moon', 'sea', 'star', 'tree'] as const;

/** A name in the platform's style: `quiet-brook-12345678`. */
export function nextName(random: RandomState): string {
  const number = String(nextInteger(random, 0, 99_999_999)).padStart(8, '0');
  return `${pick(random, ADJECTIVES)}-${pick(random, NOUNS)}-${number}`;
}
