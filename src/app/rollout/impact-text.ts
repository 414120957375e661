/** Describes when a set that becomes current would disconnect computes. `later`: how many of the disconnected computes would wait first. */
export function whenDisconnected({
  disconnected,
  later = 0,
}: {
  disconnected: number;
  later?: number | undefined;
}): string {
  if (later === 0) return ' at once';
  const now = disconnected - later;
  return `, ${now === 0 ? 'none' : now} at once and ${later} later, such as those that ebb has just discovered or restarted`;
}
