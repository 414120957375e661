export const REDACTED = '[redacted]';

/** Shorter values occur inside ordinary words and numbers. */
const SHORTEST_SECRET = 4;

export interface Redactor {
  /** Replaces every known secret in the text, even escaped in JSON or encoded in a URL. */
  redact(text: string): string;
  /** Adds a secret, e.g. a rotated key; values of less than four characters are ignored. */
  hide(secret: string): void;
}

/** Replaces secret values wherever they appear, since the redaction by field name may miss some. */
export function createRedactor(secrets: readonly string[]): Redactor {
  const forms = new Set<string>();
  let pattern: RegExp | undefined;
  const hide = (secret: string): void => {
    if (secret.length < SHORTEST_SECRET) return;
    for (const form of formsOf(secret)) forms.add(form);
    // A URL must be replaced before the password inside it.
    const longestFirst = [...forms].sort((a, b) => b.length - a.length);
    pattern = new RegExp(longestFirst.map((form) => form.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|'), 'g');
  };
  secrets.forEach(hide);
  return { hide, redact: (text) => (pattern === undefined ? text : text.replace(pattern, REDACTED)) };
}

function formsOf(secret: string): string[] {
  // Escaped once as a field of a log line; twice in a field that holds JSON.
  const once = escapedInJson(secret);
  const forms = [secret, once, escapedInJson(once)];
  try {
    return [...forms, encodeURIComponent(secret), encodeURI(secret)];
  } catch {
    // A lone surrogate can't be encoded in a URL.
    return forms;
  }
}

function escapedInJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
