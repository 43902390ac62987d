const escape = '\u001b'
/** A whole key or mouse report; SS3, CSI (with X10's three characters after `M`), or a character behind an escape. */
const sequence = new RegExp(
  `^${escape}(?:${escape}?O[\\d;]*[A-Za-z]|${escape}?\\[M[\\s\\S]{3}|${escape}?\\[(?!M)\\[?[<?]?[\\d;]*[A-Za-z~^$@]|[^${escape}[O])`,
)
const begun = new RegExp(`^${escape}(?:${escape}?(?:O[\\d;]*|\\[M[\\s\\S]{0,2}|\\[\\[?[<?]?[\\d;]*)?)$`)
/** No report of a terminal is longer. */
const longest = 64

/**
 * Cuts what a terminal sends into single keys and mouse reports: blessed reads the first mouse report of a read alone, and
 * takes a sequence that is torn between two reads for keys.
 */
export class InputPieces {
  #rest = ''

  /** Whether a piece waits for its rest, as a pressed Escape does. */
  get isTorn(): boolean {
    return this.#rest !== ''
  }

  push(text: string): string[] {
    return this.#cut(this.#rest + text, false)
  }

  /** Nothing more comes: what waits is taken as it is. */
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
