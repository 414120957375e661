/** What to tell whoever asked for what only the store has, or wanted it changed, while it is away. */
export function unavailable({ message }: Error): string {
  return `${message}: nothing was changed, try again when /readyz says that the store answers`;
}
