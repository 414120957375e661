import type { Policy } from '../../domain/policy/policy.ts';
import type { Path } from '../read-yaml.ts';
import { type LintContext, type LintRule, type Remark, timesOf } from './rule.ts';

/** Replacements for zones that keep one offset all year although their names suggest a place, and for old names. */
const INSTEAD: Readonly<Record<string, string>> = {
  EST: '"America/New_York", or "America/Panama", which never changes its clocks',
  MST: '"America/Denver", or "America/Phoenix", which never changes its clocks',
  HST: '"Pacific/Honolulu"',
  GMT: '"Europe/London", or "UTC"',
  EST5EDT: '"America/New_York"',
  CST6CDT: '"America/Chicago"',
  MST7MDT: '"America/Denver"',
  PST8PDT: '"America/Los_Angeles"',
  CET: '"Europe/Berlin" or the like',
  MET: '"Europe/Berlin" or the like',
  EET: '"Europe/Athens" or the like',
  WET: '"Europe/Lisbon"',
};
const CHANGE_CLOCKS = ['EST5EDT', 'CST6CDT', 'MST7MDT', 'PST8PDT', 'CET', 'MET', 'EET', 'WET'];
/** "Etc/GMT+5" is five hours behind UTC, not ahead. */
const ETC = /^Etc\/GMT([+-])(\d{1,2})$/;

/** Zones that name no place: fixed offsets, which are wrong for half of the year or have an unexpected sign, and old names. */
export const fixedOffsetZone: LintRule = function* (context) {
  const files = new Set<string>();
  for (const policy of context.policies) {
    const fileRemark = files.has(policy.file) ? undefined : remarkOnFile(policy, context);
    files.add(policy.file);
    if (fileRemark) yield fileRemark;
    for (const { at, text } of timesOf(policy, context)) {
      const remark = remarkOn(policy, at, writtenZone(text));
      if (remark) yield remark;
    }
  }
};

function remarkOnFile(policy: Policy, { written }: LintContext): Remark | undefined {
  const zone = written(policy)?.valueAt(['timezone']);
  const remark = remarkOn(policy, ['timezone'], typeof zone === 'string' ? zone : undefined);
  return remark && { ...remark, fromTop: true };
}

/** The zone that the text of a time names; undefined if it names none. */
function writtenZone(text: unknown): string | undefined {
  if (typeof text === 'string') return /[\d\sa-z]\s([A-Za-z][\w/+-]*)$/.exec(text.trim())?.[1];
  const zone: unknown = typeof text === 'object' && text !== null ? Reflect.get(text, 'zone') : undefined;
  return typeof zone === 'string' ? zone : undefined;
}

function remarkOn(policy: Policy, at: Path, zone: string | undefined): Remark | undefined {
  const why = zone === undefined ? undefined : whyNot(zone);
  return why === undefined ? undefined : { code: 'fixed-offset-zone', policy, at, message: `${zone} ${why}` };
}

function whyNot(zone: string): string | undefined {
  const [, sign, hours] = ETC.exec(zone) ?? [];
  if (hours !== undefined && hours !== '0') {
    const side = sign === '+' ? 'behind' : 'ahead of';
    return `is ${hours} h ${side} UTC all year, whatever its sign says; write the name of a place such as "Europe/Berlin"`;
  }
  const instead = INSTEAD[zone];
  if (instead === undefined) return undefined;
  const fault = CHANGE_CLOCKS.includes(zone) ? 'is an old name and no place' : 'is the same offset all year';
  return `${fault}; write the name of a place: ${instead}`;
}
