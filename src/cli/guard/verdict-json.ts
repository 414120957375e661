import { formatted } from '../../domain/guards/verdict.ts';

/** JSON has no infinite numbers, so they become texts. */
export function numberOf(value: number | undefined): number | string | null {
  if (value === undefined) return null;
  return Number.isFinite(value) ? value : formatted(value);
}
