import { WAITS } from '../common/waits.ts';
import { timerMs } from '../ports/clock.ts';
import type { ControlApi } from '../ports/control-api.ts';

/** Reads that take less time need no message; real milliseconds. */
const SLOW_MS = 3_000;

/** Wraps an API to tell people once that reading usage takes long. It may take minutes, since daemons share the strict rate limit of usage. */
export function announcingSlowUsage<Api extends Pick<ControlApi, 'usage'>>(api: Api, slowMs = SLOW_MS): Api {
  let sayAtMs: number | undefined;
  let isSaid = false;
  const say = () => {
    if (!isSaid) WAITS.publish('reading usage from the control API, which allows few such requests (Ctrl-C stops)');
    isSaid = true;
  };
  return {
    ...api,
    async usage(...query) {
      sayAtMs ??= performance.now() + slowMs;
      const timer = setTimeout(say, timerMs(sayAtMs - performance.now()));
      try {
        return await api.usage(...query);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
