/** Computes what the floors of guards (docs/glossary.md) cost: how much more the policies would save without them. */

import { type ComputeSettings, fieldsOf, largerSize, longerTimeout, type Size, sizeOf } from '../compute/compute.ts';
import type { Floors } from '../records/compute-record.ts';
import { type Amount, type Evidence, type PriceAt, type SettingsOverTime, savingBetween, savingOf } from './saving.ts';

/** The lost saving in a month of 730 h; undefined if nothing is known of the past. `rules` are what policies would set without floors. */
export function costOfFloors(
  { evidence, rules, priceAt }: { evidence: Evidence; rules: SettingsOverTime; priceAt: PriceAt },
  floors: Floors,
): Amount | undefined {
  const floor = { ...floors.size?.fields, ...floors.suspend_timeout?.fields };
  const withoutFloors = savingOf({ evidence, rules, priceAt });
  const withFloors = savingOf({
    evidence,
    rules: rules.map((rule) => ({ ...rule, ...settingsAbove(rule, floor) })),
    priceAt,
  });
  return withoutFloors && withFloors && savingBetween(withFloors.month.saved, withoutFloors.month.saved);
}

/** The settings, raised to the floor where they are below it. */
export function settingsAbove(settings: ComputeSettings, floor: Partial<ComputeSettings>): ComputeSettings {
  const size = fieldsOf('size', floor) as Size | undefined;
  const { suspendTimeoutSeconds: timeout } = floor;
  const { suspendTimeoutSeconds } = settings;
  return {
    ...sizeOf(size ? largerSize(settings, size) : settings),
    suspendTimeoutSeconds:
      timeout === undefined ? suspendTimeoutSeconds : longerTimeout(suspendTimeoutSeconds, timeout),
  };
}
