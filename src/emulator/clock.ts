/** The time that the emulated platform lives in; it may run faster than real time. */
export interface EmulatorClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Real milliseconds until the instant; 0 if it has passed. */
  realDelayMs(instantMs: number): number;
}

export interface SettableClock extends EmulatorClock {
  /** Jumps to `nowMs` and goes on `speed` times as fast as real time; what is left out stays. */
  set(change: { nowMs?: number; speed?: number }): void;
  speed(): number;
}

/** A clock that starts at real time and can be set and sped up; `real` is where real time comes from. */
export function createSettableClock(real: () => number = Date.now): SettableClock {
  let anchorRealMs = real();
  let anchorMs = anchorRealMs;
  let speed = 1;
  const now = (): number => Math.floor(anchorMs + Math.max(0, real() - anchorRealMs) * speed);
  return {
    now,
    speed: () => speed,
    realDelayMs: (instantMs) =>
      speed > 0 ? Math.max(0, Math.ceil((instantMs - now()) / speed)) : Number.POSITIVE_INFINITY,
    set(change) {
      anchorMs = change.nowMs ?? now();
      anchorRealMs = real();
      speed = change.speed ?? speed;
    },
  };
}
