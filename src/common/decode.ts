/** Percent-decodes a part of a URL. A text with a stray %, usually a password, is taken literally. */
export function decodeUrlPart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
