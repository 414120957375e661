/** No control characters: what people write is shown in other people's terminals. */
const SHOWABLE = /^[^\p{Cc}\p{Cf}\p{Cs}]+$/u;

/** True for one plain line that is not empty. */
export function isShowable(text: string): boolean {
  return SHOWABLE.test(text);
}
