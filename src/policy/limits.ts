/**
 * What a set of policy files may be at most. Far above what people write, and low enough that a hostile file is refused
 * before it costs anything.
 */
export const POLICY_LIMITS = {
  /** Bytes of one file. */
  fileBytes: 512 * 1024,
  /** Lexical parts of one file: words, marks, line breaks. */
  tokens: 200_000,
  /** Files of one set. */
  files: 1000,
  /** Policies of one set, disabled ones included. */
  policies: 5000,
  /** Lists and mappings inside each other. */
  depth: 24,
  /** Problems that are reported of one file. */
  problemsPerFile: 100,
} as const;
