/** Loaded into a daemon by `node --import`: whoever started it asks how long its event loop was kept at most since the last question. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 1;
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();
process.on('message', () => {
  // What has just kept the event loop is counted too, and the next question begins with a turn that is measured.
  setTimeout(() => {
    const longestMs = Math.max(0, delay.max / 1e6 - RESOLUTION_MS);
    delay.reset();
    setTimeout(() => process.send?.({ longestMs }), 5 * RESOLUTION_MS);
  }, 5 * RESOLUTION_MS);
});
process.channel?.unref();
