/** Retries of a refused key: the first and the longest pause, milliseconds; the pause doubles in between. */
export interface KeyProbes {
  firstMs: number;
  longestMs: number;
}

export const DEFAULT_KEY_PROBES: KeyProbes = { firstMs: 5_000, longestMs: 300_000 };

interface Refusal {
  key: string;
  waitMs: number;
  nextProbeAtMs: number;
  /** A probe is under way. */
  probing: boolean;
}

export interface KeyGate {
  /**
   * True if a request may be sent under this key. For a refused key that is so once in each pause: that request is the probe. A different
   * key may always be sent.
   */
  mayPass(slot: string, key: string, nowMs: number): boolean;
  /** The key was answered 401. */
  refused(slot: string, key: string, nowMs: number): void;
  /** The key was accepted. */
  accepted(slot: string): void;
  /** The slots whose key is refused. */
  refusedSlots(): string[];
}

/** Stops calls under a refused key. A slot has one key: an account, or a project of an account. */
export function createKeyGate(probes: KeyProbes): KeyGate {
  const refusals = new Map<string, Refusal>();
  return {
    mayPass(slot, key, nowMs) {
      const refusal = refusals.get(slot);
      if (refusal === undefined || refusal.key !== key) return true;
      if (nowMs < refusal.nextProbeAtMs) return false;
      // Other calls wait for the result of this probe.
      refusal.nextProbeAtMs = nowMs + refusal.waitMs;
      refusal.probing = true;
      return true;
    },
    refused(slot, key, nowMs) {
      const before = refusals.get(slot);
      const known = before?.key === key ? before : undefined;
      // Requests that were under way together are one refusal; only a probe tells something new.
      if (known !== undefined && !known.probing) return;
      const waitMs = known === undefined ? probes.firstMs : Math.min(probes.longestMs, known.waitMs * 2);
      refusals.set(slot, { key, waitMs, nextProbeAtMs: nowMs + waitMs, probing: false });
    },
    accepted: (slot) => void refusals.delete(slot),
    refusedSlots: () => [...refusals.keys()],
  };
}
