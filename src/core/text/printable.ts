const breaks = /[\t\n\v\f\r\u0085\u2028\u2029]+/g
/** Control characters, and marks that turn the direction of what stands beside them. */
const unprintable = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** A sentence that came from elsewhere as one line that can be shown as it is: what can't be is U+FFFD. */
export function printable(text: string): string {
  return text.replace(breaks, ' ').replace(unprintable, '\ufffd')
}
