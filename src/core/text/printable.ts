const breaks = /[\t\n\v\f\r\u0085\u2028\u2029]+/g
/** Control characters, marks that turn the direction of what stands beside them, what has no width, halves of surrogate pairs. */
const unprintable = /[\p{Cc}\p{Cs}\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu

/** A sentence that came from elsewhere as one line that can be shown as it is: what can't be is U+FFFD. */
export function printable(text: string): string {
  return text.replace(breaks, ' ').replace(unprintable, '\ufffd')
}
