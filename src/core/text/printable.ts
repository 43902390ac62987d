const breaks = /[\t\n\v\f\r\u0085\u2028\u2029]+/g
/** Control characters, bidi marks, zero-width characters, unpaired surrogates. */
const unprintable = /[\p{Cc}\p{Cs}\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu

/** Makes foreign text safe to show on one line: unprintable characters become U+FFFD. */
export function printable(text: string): string {
  return text.replace(breaks, ' ').replace(unprintable, '\ufffd')
}
