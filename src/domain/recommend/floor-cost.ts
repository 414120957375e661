/** Computes what floors of guards cost: the savings of policies that they prevent. */

import { type ComputeSettings, fieldsOf, largerSize, longerTimeout, type Size, sizeOf } from '../compute/compute.ts';
import type { Floors } from '../records/compute-record.ts';
import { type Amount, type Evidence, type PriceAt, type Rules, savingBetween, savingOf } from './saving.ts';

/** The lost saving in a month of 730 h; undefined if nothing is known of the past. `rules` are those of the policies without floors. */
export function costOfFloors(
  { evidence, rules, priceAt }: { evidence: Evidence; rules: Rules; priceAt: PriceAt },
  floors: Floors,
): Amount | undefined {
  const fields = { ...floors.size?.fields, ...floors.suspend_timeout?.fields };
  const asWanted = savingOf({ evidence, rules, priceAt });
  const kept = savingOf({
    evidence,
    rules: rules.map((rule) => ({ ...rule, ...settingsAbove(rule, fields) })),
    priceAt,
  });
  return asWanted && kept && savingBetween(kept.month.saved, asWanted.month.saved);
}

/** The settings, with these fields raised to the floor where they are below it. */
export function settingsAbove(settings: ComputeSettings, fields: Partial<ComputeSettings>): ComputeSettings {
  const size = fieldsOf('size', fields) as Size | undefined;
  const { suspendTimeoutSeconds: timeout } = fields;
  const { suspendTimeoutSeconds } = settings;
  return {
    ...sizeOf(size ? largerSize(settings, size) : settings),
    suspendTimeoutSeconds:
      timeout === undefined ? suspendTimeoutSeconds : longerTimeout(suspendTimeoutSeconds, timeout),
  };
}
