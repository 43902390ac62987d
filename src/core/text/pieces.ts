/** The beginning of a text, at most `most` UTF-16 code units; never ends within a surrogate pair. */
export function beginning(text: string, most: number): string {
  if (text.length <= most) return text
  const last = text.charCodeAt(most - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most)
}

/** The text in pieces of at most `most` UTF-16 code units (2 or more), none of which ends within a surrogate pair. */
export function* pieces(text: string, most: number): Generator<string> {
  for (let rest = text; rest !== ''; ) {
    const piece = beginning(rest, most)
    yield piece
    rest = rest.slice(piece.length)
  }
}

/** The text, or its first `most` characters and `mark`; splits no surrogate pair. */
export function shortened(text: string, most: number, mark = '…'): string {
  return text.length <= most ? text : beginning(text, most) + mark
}
