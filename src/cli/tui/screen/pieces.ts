const escape = '\u001b'
/** A whole key or mouse report: SS3, CSI (X10: three characters after `M`), or Escape and a character. */
const sequence = new RegExp(
  `^${escape}(?:${escape}?O[\\d;]*[A-Za-z]|${escape}?\\[M[\\s\\S]{3}|${escape}?\\[(?!M)\\[?[<?]?[\\d;]*[A-Za-z~^$@]|[^${escape}[O])`,
)
const begun = new RegExp(`^${escape}(?:${escape}?(?:O[\\d;]*|\\[M[\\s\\S]{0,2}|\\[\\[?[<?]?[\\d;]*)?)$`)
/** Longest report of a terminal. */
const longest = 64

/**
 * Splits input into keys and mouse reports: blessed reads only the first report of a read, and mistakes a
 * sequence split between reads for keys.
 */
export class InputPieces {
  #rest = ''

  /** Whether an incomplete piece is pending, as after a pressed Escape. */
  get isTorn(): boolean {
    return this.#rest !== ''
  }

  push(text: string): string[] {
    return this.#cut(this.#rest + text, false)
  }

  /** Takes the pending piece as it is. */
  flush(): string[] {
    return this.#cut(this.#rest, true)
  }

  #cut(text: string, isWhole: boolean): string[] {
    const pieces: string[] = []
    let rest = text
    while (rest !== '') {
      if (!isWhole && rest.length < longest && begun.test(rest)) break
      const [piece = String.fromCodePoint(rest.codePointAt(0) ?? 0)] = sequence.exec(rest) ?? []
      pieces.push(piece)
      rest = rest.slice(piece.length)
    }
    this.#rest = rest
    return pieces
  }
}
