import type { TimeSpec } from '../time-spec.ts';
import { cronSwitch } from './cron-switch.ts';
import { cronWindow } from './cron-window.ts';
import { byOpenings, type WindowKind } from './opening.ts';
import { weekly } from './weekly.ts';

/** Every kind of window: a new one is one file and one line here. */
const KINDS: { [K in TimeSpec['kind']]: WindowKind<Extract<TimeSpec, { kind: K }>> } = {
  weekly,
  cron: cronWindow,
  'cron-switch': cronSwitch,
  interval: byOpenings((spec) => [spec], {
    nextStartAfter: ({ startMs, endMs }, instantMs) => (startMs > instantMs && startMs < endMs ? startMs : undefined),
    latestEndUntil: ({ startMs, endMs }, instantMs) => (endMs <= instantMs && startMs < endMs ? endMs : undefined),
  }),
  always: byOpenings(() => [{ startMs: Number.NEGATIVE_INFINITY, endMs: Number.POSITIVE_INFINITY }], {
    nextStartAfter: () => undefined,
    latestEndUntil: () => undefined,
  }),
};

/** How the kind of a window answers. */
export function kindOf<Spec extends TimeSpec>(spec: Spec): WindowKind<Spec> {
  return KINDS[spec.kind] as unknown as WindowKind<Spec>;
}
