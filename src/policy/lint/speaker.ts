import type { SchedulePolicy } from '../../domain/policy/kinds/schedule.ts';
import type { TimeSpec } from '../../domain/time/time-spec.ts';
import { earliest } from './instants.ts';
import type { OpeningsCache } from './openings.ts';
import { type Field, wish } from './schedules.ts';

/** One window of a schedule that wants something of a field. */
export interface Voice {
  /** Place of the window in its policy. */
  window: number;
  at: readonly TimeSpec[];
  wish: string;
}

/** What the windows of one schedule say about one field, whether several of them are open or none. */
export interface Speaker {
  voices: readonly Voice[];
  /** The window that is heard at an instant. */
  heardAt(instantMs: number): (Voice & { isAbsolute: boolean }) | undefined;
  nextStartAfter(instantMs: number): number | undefined;
  nextChangeAfter(instantMs: number): number | undefined;
}

export function createSpeaker(policy: SchedulePolicy, field: Field, openings: OpeningsCache): Speaker {
  const voices = policy.windows.flatMap((window, index): Voice[] => {
    const wanted = wish(window, field);
    return wanted === undefined ? [] : [{ window: index, at: window.at, wish: wanted }];
  });
  let found: ReturnType<typeof partsOf> | undefined;
  const parts = () => {
    found ??= partsOf(voices, openings);
    return found;
  };
  return {
    voices,
    heardAt: (instantMs) => parts().find((part) => part.openings.isOpenAt(instantMs)),
    nextStartAfter: (instantMs) => earliest(parts().map((part) => part.openings.nextStartAfter(instantMs))),
    nextChangeAfter: (instantMs) => earliest(parts().map((part) => part.openings.nextChangeAfter(instantMs))),
  };
}

/** As the language hears the windows of one policy: absolute intervals first, then the later window. */
function partsOf(voices: readonly Voice[], openings: OpeningsCache) {
  return voices
    .flatMap((voice) => {
      const absolute = voice.at.filter(({ kind }) => kind === 'interval');
      const recurring = voice.at.filter(({ kind }) => kind !== 'interval');
      return [
        { ...voice, isAbsolute: true, openings: openings.of(absolute) },
        { ...voice, isAbsolute: false, openings: openings.of(recurring) },
      ];
    })
    .sort((a, b) => Number(b.isAbsolute) - Number(a.isAbsolute) || b.window - a.window);
}
