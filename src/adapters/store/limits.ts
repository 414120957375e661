/** How much the store keeps. */
export interface StoreLimits {
  holds: number;
  freezes: number;
  approvals: number;
  historyPerCompute: number;
  /** Over all computes; on Postgres up to a hundredth more. */
  history: number;
  historyEntryBytes: number;
  /** Of connections, per compute. */
  samples: number;
}

export const DEFAULT_LIMITS: StoreLimits = {
  holds: 10_000,
  freezes: 1000,
  approvals: 100,
  historyPerCompute: 20,
  history: 10_000,
  historyEntryBytes: 1024,
  samples: 32,
};
