import type * as domain from '../domain/policy.ts';
import type { Otherwise, SchedulePolicy, ScheduleWindow } from './schema/schedule.ts';
import type { Selector } from './schema/selector.ts';
import { resolveTime } from './time-text.ts';

/** What a policy takes from the file that it stands in. */
export interface FileContext {
  file: string;
  timezone: string;
  owner: string | undefined;
}

/** A checked schedule as the domain knows it: times with their zones, absent fields absent. */
export function toSchedule(policy: SchedulePolicy, { file, timezone, owner }: FileContext): domain.SchedulePolicy {
  return {
    kind: 'schedule',
    name: policy.name,
    file,
    ...(owner !== undefined && { owner }),
    mode: policy.mode,
    select: toSelector(policy.select),
    priority: policy.priority,
    windows: policy.windows.map((window) => toWindow(window, timezone)),
    otherwise: toOtherwise(policy.otherwise),
  };
}

function toSelector({ min_age, ...lists }: Selector): domain.Selector {
  const { accounts, projects, branches, computes, regions, types } = lists;
  return {
    ...(accounts && { accounts }),
    ...(projects && { projects }),
    ...(branches && { branches }),
    ...(computes && { computes }),
    ...(regions && { regions }),
    ...(types && { types }),
    minAgeMs: min_age,
  };
}

function toWindow(window: ScheduleWindow, timezone: string): domain.ScheduleWindow {
  return { at: window.at.map((time) => resolveTime(time, timezone)), ...toValues(window) };
}

function toOtherwise(otherwise: Otherwise): domain.SchedulePolicy['otherwise'] {
  return typeof otherwise === 'string' ? otherwise : toValues(otherwise);
}

function toValues({ size, suspend_after }: Pick<ScheduleWindow, 'size' | 'suspend_after'>): domain.ScheduleValues {
  return { ...(size && { size }), ...(suspend_after !== undefined && { suspendTimeoutSeconds: suspend_after }) };
}
