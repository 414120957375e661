const LONGEST = 100;

/** Ambiguous quoting: where it stands, what follows can't be told from a literal. */
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
 * A statement without its values, for people: literals, numbers and comments are gone, names stay, and it is short. Text may be cut off
 * anywhere, as Postgres does it; from where quoting is ambiguous on, nothing is shown.
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
  const whole = ambiguous < 0 ? text : `${text} …`;
  return whole.length <= LONGEST ? whole : `${whole.slice(0, LONGEST - 1)}…`;
}

/** Statements that frame the work of clients and say nothing about it. */
const FRAME =
  /^(begin|start transaction|commit|end|rollback|abort|savepoint|release|set|reset|discard|deallocate|show|unlisten|select pg_catalog\.set_config)\b/i;

export function isFrame(text: string): boolean {
  return text === '' || FRAME.test(text);
}
