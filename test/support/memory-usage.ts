import type { UsageStore } from '../../src/ports/store.ts';

/** A store of usage in the memory. */
export function memoryUsageStore(): UsageStore & { bytes: Map<string, Map<string, Uint8Array>> } {
  const bytes = new Map<string, Map<string, Uint8Array>>();
  const of = (account: string) => {
    const known = bytes.get(account) ?? new Map<string, Uint8Array>();
    bytes.set(account, known);
    return known;
  };
  return {
    bytes,
    usageAccounts: async () => [...bytes].flatMap(([account, units]) => (units.size > 0 ? [account] : [])).sort(),
    usageUnits: async (account) => [...of(account).keys()].sort(),
    usage: async (account, units) => new Map([...of(account)].filter(([unit]) => units.includes(unit))),
    putUsage: async (account, usage) => {
      for (const [unit, one] of usage) of(account).set(unit, one);
    },
    deleteUsage: async (account, units) => {
      for (const unit of units) of(account).delete(unit);
    },
  };
}
