const escape = '\u001b'

/**
 * Private modes (DECSET) that make a terminal unfit for a shell when they stay, with the state in which a shell expects
 * them: cursor keys, wrapping, mouse, shown cursor, alternate screen, focus, bracketed paste, synchronised updates.
 */
const usual = new Map<number, boolean>([
  ...[1, 9, 47, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1049, 2004, 2026].map(
    (mode): [number, boolean] => [mode, false],
  ),
  [7, true],
  [25, true],
])
const alternateScreens = ['?47', '?1047', '?1049']

/** DECSET and DECRST, the key encodings of xterm and kitty, keypad, RIS. Built from text: the source holds no control character. */
const sequences = new RegExp(
  `${escape}(?:\\[(?:\\?(?<modes>[\\d;]+)(?<set>[hl])|>4(?:;(?<keys>\\d*))?m|(?<kitty>[<>])\\d*u)|(?<pad>[=>])|(?<reset>c))`,
  'g',
)
const unfinished = new RegExp(`${escape}(?:\\[[?<>]?[\\d;]*)?$`)
/** Longer than any sequence that is looked for. */
const longest = 64

/** What the programs of a session have made of the terminal, so that it can be undone where they can't any more. */
export class TerminalModes {
  /** What was changed, in that order: the sequence that did it and the one that undoes it. */
  readonly #changes = new Map<string, { readonly redo: string; readonly undo: string }>()
  #rest = ''

  get isAlternate(): boolean {
    return alternateScreens.some((mode) => this.#changes.has(mode))
  }

  see(output: string): void {
    if (this.#rest === '' && !output.includes(escape)) return
    const text = this.#rest + output
    for (const { 0: redo, groups = {} } of text.matchAll(sequences)) {
      const { modes, set, keys, kitty, pad, reset } = groups
      if (modes !== undefined) for (const mode of modes.split(';')) this.#mode(Number(mode), set === 'h')
      else if (kitty !== undefined) this.#kitty(kitty === '>', redo)
      else if (pad !== undefined) this.#note('pad', pad === '=', redo, `${escape}>`)
      else if (reset !== undefined) this.#changes.clear()
      else this.#note('keys', (keys || '0') !== '0', redo, `${escape}[>4m`)
    }
    this.#rest = unfinished.exec(text.slice(-longest))?.[0] ?? ''
  }

  /** Makes the terminal fit for a shell; nothing where nothing has to be undone. */
  undo(): string {
    const steps = [...this.#changes.values()].reverse().map(({ undo }) => undo)
    return steps.length === 0 ? '' : `${steps.join('')}${escape}[0m`
  }

  /** Takes back what `undo` did. */
  redo(): string {
    return [...this.#changes.values()].map(({ redo }) => redo).join('')
  }

  #mode(mode: number, isSet: boolean): void {
    const expected = usual.get(mode)
    if (expected === undefined) return
    const [on, off] = [`${escape}[?${mode}h`, `${escape}[?${mode}l`]
    this.#note(`?${mode}`, isSet !== expected, isSet ? on : off, expected ? on : off)
  }

  /** Its encodings are a stack. */
  #kitty(isPush: boolean, redo: string): void {
    let depth = 0
    while (this.#changes.has(`kitty${depth}`)) depth++
    if (isPush) this.#note(`kitty${depth}`, true, redo, `${escape}[<u`)
    else this.#changes.delete(`kitty${depth - 1}`)
  }

  #note(what: string, isChanged: boolean, redo: string, undo: string): void {
    this.#changes.delete(what)
    if (isChanged) this.#changes.set(what, { redo, undo })
  }
}
