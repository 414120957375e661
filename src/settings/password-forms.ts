/** The forms in which a password of a URL may show up: as written and percent-decoded. */
export function asWrittenAndDecoded(value: string): string[] {
  if (value === '') return [];
  try {
    return [...new Set([value, decodeURIComponent(value)])];
  } catch {
    return [value];
  }
}
