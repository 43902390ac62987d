import { FitAddon } from '@xterm/addon-fit'
import { UnicodeGraphemesAddon } from '@xterm/addon-unicode-graphemes'
import { WebLinksAddon } from '@xterm/addon-web-links'
import { type ITheme, Terminal } from '@xterm/xterm'
import { copyText } from '../parts/browser.ts'
import { createStore, readStored, writeStored } from '../store.ts'
import { isDark } from '../theme.ts'

const scrollback = 10_000
const fontFamily =
  'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace'

/** Each colour in the dark and in the light theme. */
const colours = {
  background: ['#12151c', '#fbfbfd'],
  foreground: ['#d6dbe6', '#22262e'],
  cursor: ['#8fb4ff', '#2457d6'],
  cursorAccent: ['#12151c', '#fbfbfd'],
  selectionBackground: ['#32528f', '#b9cdf7'],
  black: ['#2a2f3a', '#22262e'],
  red: ['#f0777a', '#b3261e'],
  green: ['#7fc98b', '#1c7a35'],
  yellow: ['#e3b866', '#8a5a00'],
  blue: ['#7aa7f7', '#2457d6'],
  magenta: ['#c593e6', '#8b35b0'],
  cyan: ['#68c5cf', '#0b7285'],
  white: ['#d6dbe6', '#5c6470'],
  brightBlack: ['#717a8c', '#6b7280'],
  brightRed: ['#ff9a9c', '#c4372f'],
  brightGreen: ['#a0e0aa', '#25833f'],
  brightYellow: ['#f5d28c', '#946200'],
  brightBlue: ['#a0c3ff', '#3a6ae0'],
  brightMagenta: ['#dbb2f5', '#9b47c0'],
  brightCyan: ['#8fdfe8', '#15808f'],
  brightWhite: ['#ffffff', '#22262e'],
} as const

function theme(): ITheme {
  const which = isDark.get() ? 0 : 1
  return Object.fromEntries(Object.entries(colours).map(([name, pair]) => [name, pair[which]]))
}

export interface Screen {
  readonly terminal: Terminal
  /** Fits columns and rows to the available space; no effect while hidden. */
  fit(): void
  /** Whether to answer queries of hosts, such as terminal type and cursor position. */
  answer(isOn: boolean): void
  copy(): void
  close(): void
}

/** Queries of a host: device attributes, status reports, modes, settings; colours by these OSC numbers. */
const questions = [
  { final: 'c' },
  { prefix: '>', final: 'c' },
  { prefix: '=', final: 'c' },
  { prefix: '>', final: 'q' },
  { final: 'n' },
  { prefix: '?', final: 'n' },
  { intermediates: '$', final: 'p' },
  { prefix: '?', intermediates: '$', final: 'p' },
]
const colourQuestions = [4, 10, 11, 12]

/** Ignores queries in replayed output, because the answers would be typed into the shell. */
function guardQuestions({ parser }: Terminal, isAnswered: () => boolean): void {
  for (const question of questions) parser.registerCsiHandler(question, () => !isAnswered())
  parser.registerDcsHandler({ intermediates: '$', final: 'q' }, () => !isAnswered())
  for (const colour of colourQuestions)
    parser.registerOscHandler(colour, (data) => !isAnswered() && data.includes('?'))
}

/** Creates a terminal screen in `element`; the key that leaves it calls `onLeave`. */
export function createScreen(element: HTMLElement, onLeave?: () => void): Screen {
  const terminal = new Terminal({
    allowProposedApi: true,
    scrollback,
    fontFamily,
    fontSize: 13,
    lineHeight: 1.15,
    theme: theme(),
  })
  const fitting = new FitAddon()
  terminal.loadAddon(fitting)
  terminal.loadAddon(new UnicodeGraphemesAddon())
  terminal.loadAddon(new WebLinksAddon((_event, uri) => window.open(uri, '_blank', 'noopener,noreferrer')))
  let isAnswered = true
  guardQuestions(terminal, () => isAnswered)
  terminal.open(element)
  const copy = () => copyText(terminal.getSelection())
  terminal.attachCustomKeyEventHandler((event) => {
    if (!event.ctrlKey || !event.shiftKey || event.altKey || event.metaKey) return true
    // The browser itself pastes, because a page may not read the clipboard.
    if (event.code === 'KeyV') return false
    if (event.code !== 'KeyC' && event.code !== 'KeyL') return true
    event.preventDefault()
    if (event.type === 'keydown') (event.code === 'KeyC' ? copy : onLeave)?.()
    return false
  })
  const unsubscribe = isDark.subscribe(() => {
    terminal.options.theme = theme()
  })
  return {
    terminal,
    fit() {
      if (element.offsetParent !== null) fitting.fit()
    },
    answer(isOn) {
      isAnswered = isOn
    },
    copy,
    close() {
      unsubscribe()
      terminal.dispose()
    },
  }
}

const key = 'rsm.screen-reader'

/** Whether terminals announce their output to screen readers. */
export const readerMode = createStore(readStored(localStorage, key) === true)
readerMode.subscribe(() => writeStored(localStorage, key, readerMode.get()))
