/** What stands in for a secret. */
const REDACTED = '[redacted]';

/** No message is longer: what a server says enters logs and metrics pages. */
const MAX_MESSAGE_LENGTH = 500;

/** What API keys look like wherever they come from, so that a key that is not ours is not shown either. */
const KEY_LIKE = /\b(?:napi_[a-z0-9]{8,}|bearer\s+[^\s"',;]+)/gi;

export interface Redactor {
  /** Remembers a secret that no later text may hold. */
  hide(secret: string): void;
  /** The text in one line, without secrets, cut to a bounded length. */
  clean(text: string): string;
}

/** Takes secrets out of texts that others wrote, in the forms in which a server may echo them: as is, percent-encoded, base64. */
export function createRedactor(): Redactor {
  const forms = new Set<string>();
  return {
    hide(secret) {
      if (secret === '') return;
      forms.add(secret);
      forms.add(encodeURIComponent(secret));
      forms.add(JSON.stringify(secret).slice(1, -1));
      forms.add(Buffer.from(secret).toString('base64'));
    },
    clean(text) {
      // Cut after replacing: a cut in the middle of a key would leave its first half.
      let cleaned = text;
      for (const form of [...forms].sort((a, b) => b.length - a.length)) cleaned = cleaned.replaceAll(form, REDACTED);
      cleaned = cleaned.replace(KEY_LIKE, REDACTED);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not reach a terminal or a log line.
      return cleaned.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').slice(0, MAX_MESSAGE_LENGTH);
    },
  };
}
