const escape = '\u001b'

/**
 * Private modes (DECSET) that make a terminal unfit for a shell when they stay, with the state in which a shell expects
 * them: cursor keys, wrapping, mouse, shown cursor, alternate screen, focus, bracketed paste, synchronised updates.
 */
const expectedModes = new Map<number, boolean>([
  ...[1, 9, 47, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1049, 2004, 2026].map(
    (mode): [number, boolean] => [mode, false],
  ),
  [7, true],
  [25, true],
])
const alternateScreens = ['?47', '?1047', '?1049']

/** DECSET and DECRST, the key encodings of xterm and kitty, keypad, RIS. Built from text: the source holds no control character. */
const sequences = new RegExp(
  `${escape}(?:\\[(?:\\?(?<modes>[\\d;]+)(?<set>[hl])|>4(?:;(?<keys>\\d*))?m|(?<kitty>[<>])(?<number>\\d*)u)|(?<pad>[=>])|(?<reset>c))`,
  'g',
)
const unfinished = new RegExp(`${escape}(?:\\[[?<>]?[\\d;]*)?$`)
/** A sequence that is torn is put together again up to so many characters: far more than any program sends. */
const longestTorn = 1024
/** Encodings of keys that are kept: terminals, too, let go of the oldest beyond a bound of theirs. */
const mostEncodings = 16

/**
 * What the programs of a session have changed in the terminal, so that it can be undone when they no longer can. The output is a
 * host's: it is scanned once, and what is kept is bounded.
 */
export class TerminalModes {
  /** What was changed, in that order: the sequence that did it and the one that undoes it. */
  readonly #changes = new Map<string, { readonly redo: string; readonly undo: string }>()
  /** The encodings that are in force, the newest last, by their names among the changes. */
  #encodings: string[] = []
  #pushed = 0
  #rest = ''

  get isAlternate(): boolean {
    return alternateScreens.some((mode) => this.#changes.has(mode))
  }

  see(output: string): void {
    if (this.#rest === '' && !output.includes(escape)) return
    const text = this.#rest + output
    for (const { groups = {} } of text.matchAll(sequences)) {
      const { modes, set, keys, kitty, number = '', pad, reset } = groups
      if (modes !== undefined) for (const mode of modes.split(';')) this.#mode(Number(mode), set === 'h')
      else if (kitty === '>') this.#push(Number(number))
      else if (kitty === '<') this.#pop(Number(number || '1'))
      else if (pad !== undefined) this.#note('pad', pad === '=', `${escape}=`, `${escape}>`)
      else if (reset !== undefined) this.#forget()
      else this.#keys(Number(keys))
    }
    this.#rest = unfinished.exec(text.slice(-longestTorn))?.[0] ?? ''
  }

  /** Makes the terminal fit for a shell; nothing where nothing has to be undone. */
  undo(): string {
    const steps = [...this.#changes.values()].reverse().map(({ undo }) => undo)
    return steps.length === 0 ? '' : `${steps.join('')}${escape}[0m`
  }

  redo(): string {
    return [...this.#changes.values()].map(({ redo }) => redo).join('')
  }

  #mode(mode: number, isSet: boolean): void {
    const expected = expectedModes.get(mode)
    if (expected === undefined) return
    const [on, off] = [`${escape}[?${mode}h`, `${escape}[?${mode}l`]
    this.#note(`?${mode}`, isSet !== expected, isSet ? on : off, expected ? on : off)
  }

  /** The numbers are a host's, of any length: what is kept of them is written again, and short. */
  #keys(level: number): void {
    this.#note('keys', level !== 0, `${escape}[>4;${Math.min(level, 9)}m`, `${escape}[>4m`)
  }

  #push(flags: number): void {
    const name = `encoding${this.#pushed++}`
    this.#note(name, true, `${escape}[>${Math.min(flags, 999)}u`, `${escape}[<u`)
    this.#encodings.push(name)
    if (this.#encodings.length > mostEncodings) this.#changes.delete(this.#encodings.shift() ?? '')
  }

  #pop(count: number): void {
    for (let left = count; left > 0 && this.#encodings.length > 0; left--)
      this.#changes.delete(this.#encodings.pop() ?? '')
  }

  #forget(): void {
    this.#changes.clear()
    this.#encodings = []
  }

  #note(what: string, isChanged: boolean, redo: string, undo: string): void {
    this.#changes.delete(what)
    if (isChanged) this.#changes.set(what, { redo, undo })
  }
}
