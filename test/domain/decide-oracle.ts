import type { ComputeSettings, Size } from '../../src/domain/compute/compute.ts';
import type { SchedulePolicy } from '../../src/domain/policy/kinds/schedule.ts';
import type { ScheduleWindow } from '../../src/domain/policy/schedule-window.ts';
import type { TimeSpec } from '../../src/domain/time/time-spec.ts';
import { MINUTE_MS, minutesOf, type SlowWindows } from './windows-oracle.ts';

/**
 * The obvious implementation of what schedules want: at each minute it writes down everybody who speaks, sorts them as the
 * page of the language says, and takes the first. Whether a window opens soon it finds out by walking on minute by minute.
 */
interface Speaker {
  policy: SchedulePolicy;
  policyIndex: number;
  window: ScheduleWindow | undefined;
  windowIndex: number;
  isAbsolute: boolean;
  /** The minute at which it opens, if it only will. */
  opensMs?: number;
}

type Values = Partial<Pick<ComputeSettings, 'suspendTimeoutSeconds'> & { size: Size }>;

/** The same windows, each asked only once for each minute of [fromMs, toMs). */
export function rememberMinutes(windows: SlowWindows, fromMs: number, toMs: number): SlowWindows {
  const known = new WeakMap<readonly TimeSpec[], boolean[]>();
  return {
    isOpenAt(specs, instantMs) {
      const minutes = known.get(specs) ?? minutesOf(fromMs, toMs).map((ms) => windows.isOpenAt(specs, ms));
      known.set(specs, minutes);
      return minutes[(instantMs - fromMs) / MINUTE_MS] ?? false;
    },
  };
}

export function slowDecide(
  policies: readonly SchedulePolicy[],
  { windows, actual, baseline }: { windows: SlowWindows; actual: ComputeSettings; baseline: ComputeSettings },
  instantMs: number,
) {
  const speakers = policies.flatMap((policy, policyIndex) => speakersOf(policy, policyIndex));
  return { size: settle('size', larger), suspendTimeoutSeconds: settle('suspendTimeoutSeconds', longer) };

  function speakersOf(policy: SchedulePolicy, policyIndex: number): Speaker[] {
    const open = policy.windows.flatMap((window, windowIndex): Speaker[] => {
      const speaker = { policy, policyIndex, window, windowIndex };
      if (windows.isOpenAt(window.at, instantMs)) return [{ ...speaker, isAbsolute: isAbsolute(window, instantMs) }];
      for (let ms = instantMs + MINUTE_MS; ms <= instantMs + (window.readyLeadMs ?? 0); ms += MINUTE_MS) {
        if (windows.isOpenAt(window.at, ms)) return [{ ...speaker, isAbsolute: isAbsolute(window, ms), opensMs: ms }];
      }
      return [];
    });
    return [...open, { policy, policyIndex, window: undefined, windowIndex: -1, isAbsolute: false }];
  }

  function proposedBy<K extends keyof Values>(key: K, { policy, window }: Speaker): Values[K] | undefined {
    if (window) return (key === 'size' ? window.size : window.suspendTimeoutSeconds) as Values[K];
    if (policy.otherwise === 'leave') return undefined;
    const values = policy.otherwise === 'baseline' ? withSize(baseline) : policy.otherwise;
    return (key === 'size' ? values.size : values.suspendTimeoutSeconds) as Values[K];
  }

  function settle<K extends keyof Values>(key: K, max: (a: Values[K], b: Values[K]) => Values[K]) {
    const effective = speakers.filter((speaker) => proposedBy(key, speaker) !== undefined).sort(byRank);
    const winner = effective.find(({ opensMs }) => opensMs === undefined);
    const leading = effective.filter((speaker) => speaker.opensMs !== undefined && !isBeaten(speaker, effective));
    const old = winner ? proposedBy(key, winner) : withSize(actual)[key];
    const result = leading.reduce((value, lead) => max(value as Values[K], proposedBy(key, lead) as Values[K]), old);
    return winner === undefined && JSON.stringify(result) === JSON.stringify(old) ? null : result;
  }

  /** Somebody better is open with a higher priority, or will still be open, or opens no later and leads itself. */
  function isBeaten(lead: Speaker, effective: readonly Speaker[]): boolean {
    const better = effective.slice(0, effective.indexOf(lead)).filter(({ window }) => window !== undefined);
    const open = better.find(({ opensMs }) => opensMs === undefined);
    if (open && open.policy.priority > lead.policy.priority) return true;
    if (open && windows.isOpenAt(open.window?.at ?? [], lead.opensMs ?? 0)) return true;
    return better.some((other) => {
      const isEarlier = other.opensMs !== undefined && other.opensMs <= (lead.opensMs ?? 0);
      return isEarlier && !isBeaten(other, effective);
    });
  }
}

function isAbsolute({ at }: ScheduleWindow, ms: number): boolean {
  return at.some((spec) => spec.kind === 'interval' && spec.startMs <= ms && ms < spec.endMs);
}

function byRank(a: Speaker, b: Speaker): number {
  return (
    Number(b.window !== undefined) - Number(a.window !== undefined) ||
    b.policy.priority - a.policy.priority ||
    Number(b.isAbsolute) - Number(a.isAbsolute) ||
    b.policyIndex - a.policyIndex ||
    b.windowIndex - a.windowIndex
  );
}

function withSize({ minCu, maxCu, suspendTimeoutSeconds }: ComputeSettings) {
  return { size: { minCu, maxCu }, suspendTimeoutSeconds };
}

function larger(a: Size | undefined, b: Size | undefined): Size | undefined {
  return a && b && { minCu: Math.max(a.minCu, b.minCu), maxCu: Math.max(a.maxCu, b.maxCu) };
}

function longer(a: number | undefined, b: number | undefined): number | undefined {
  return a === -1 || b === -1 ? -1 : Math.max(a ?? 0, b ?? 0);
}
