const MAX_LENGTH = 100;

/** After a backslash before a quote, or in nested comments, text can't be told from a literal. */
const AMBIGUOUS = /\\['"]|\/\*(?:(?!\*\/)[\s\S])*?\/\*/;

const TOKENS = new RegExp(
  [
    String.raw`--[^\n]*|/\*[\s\S]*?(?:\*/|$)`, // comments: they may hold values
    '"(?:[^"]|"")*(?:"|$)', // names in quotes stay
    "'(?:[^']|'')*(?:'|$)",
    String.raw`\$(?<tag>[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$[\s\S]*?(?:\$\k<tag>\$|$)`,
    String.raw`\$\d+`, // parameters
    String.raw`(?<![\w$\u0080-\uffff])(?:\d|\.\d)[\w.]*(?:(?<=[eE])[+-]\d+)?`,
  ].join('|'),
  'g',
);

/**
 * Shortens a statement and removes its values for people: literals, numbers and comments go, names stay. The text may be cut off
 * anywhere, as Postgres does it. Nothing is shown from the point where quoting is ambiguous.
 */
export function fingerprint(statement: string): string {
  const ambiguous = statement.search(AMBIGUOUS);
  const clear = ambiguous < 0 ? statement : statement.slice(0, ambiguous);
  // The quote that is still open at an ambiguous place hides the rest, like one that Postgres has cut off.
  const shown = clear.replace(TOKENS, (token) => {
    if (token.startsWith('"')) return token;
    return token.startsWith('--') || token.startsWith('/*') ? ' ' : '?';
  });
  const text = shown
    .replace(/\s+/g, ' ')
    .replace(/\b(in|values) ?\(\?(?:, ?\?)+\)(?:, ?\(\?(?:, ?\?)*\))*/gi, '$1 (?)')
    .trim();
  const marked = ambiguous < 0 ? text : `${text} …`;
  return marked.length <= MAX_LENGTH ? marked : `${marked.slice(0, MAX_LENGTH - 1)}…`;
}

/** Statements around the work of clients, which say nothing about it. */
const FRAME =
  /^(begin|start transaction|commit|end|rollback|abort|savepoint|release|set|reset|discard|deallocate|show|unlisten|select pg_catalog\.set_config)\b/i;

export function isFrame({ text }: { text: string }): boolean {
  return text === '' || FRAME.test(text);
}
