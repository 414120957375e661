import { IANAZone } from 'luxon';
import { z } from 'zod';
import { didYouMean } from '../suggest.ts';
import { expected } from './expected.ts';

/** Names of three letters that the zone database has. The runtime takes others too, such as IST, that mean several zones. */
const SHORT_NAMES = ['UTC', 'GMT', 'UCT', 'CET', 'EET', 'WET', 'MET', 'EST', 'MST', 'HST', 'PRC', 'ROC', 'ROK'];

const KNOWN_ZONES: ReadonlySet<string> = new Set([...Intl.supportedValuesOf('timeZone'), 'UTC']);

/** What is wrong with the name of a zone, or undefined if it is an IANA name. */
export function zoneError(name: string): string | undefined {
  if (KNOWN_ZONES.has(name)) return undefined;
  const known = [...KNOWN_ZONES];
  const sameButCase = known.some((zone) => zone.toLowerCase() === name.toLowerCase());
  const isShort = name.length <= 3 || name.startsWith('SystemV/');
  const isOther = !sameButCase && (isShort ? SHORT_NAMES.includes(name) : IANAZone.isValidZone(name));
  if (isOther) return undefined;
  const suggestion = didYouMean(name, known) || '; expected an IANA name such as "Europe/Berlin"';
  return `${JSON.stringify(name.slice(0, 60))} is not a time zone${suggestion}`;
}

/** An IANA name of a time zone that this machine knows. */
export const Zone = z
  .string(expected('an IANA name of a time zone such as "Europe/Berlin"'))
  .describe('IANA name of a time zone, such as Europe/Berlin.')
  .meta({ allOf: [{ $ref: '#/definitions/zone' }] })
  .superRefine((name, context) => {
    const message = zoneError(name);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });
export type Zone = z.infer<typeof Zone>;
