import { nextInteger, pick, type RandomState } from './random.ts';

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

/** A name as the platform makes them up: `quiet-brook-12345678`. */
export function nextName(random: RandomState): string {
  const number = String(nextInteger(random, 0, 99_999_999)).padStart(8, '0');
  return `${pick(random, ADJECTIVES)}-${pick(random, NOUNS)}-${number}`;
}
