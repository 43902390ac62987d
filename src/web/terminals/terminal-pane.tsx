import { useEffect, useRef, useState } from 'preact/hooks'
import { WatcherNotices } from '../../cli/terminal/watcher-notices.ts'
import { useStore } from '../store.ts'
import { closeTab, nameTerminal, openTerminal, type Tab } from './open-terminals.ts'
import { createScreen, readerMode, type Screen } from './screen.ts'
import { createTerminalLink, type LinkState, type TerminalLink } from './terminal-link.ts'
import { attachedText, type ScreenKey, screenKeys, sequenceOf, withCtrl } from './terminal-text.ts'

const names: Partial<Record<ScreenKey, string>> = {
  '←': 'Left',
  '↑': 'Up',
  '↓': 'Down',
  '→': 'Right',
}

interface ScreenKeysProps {
  /** Whether Ctrl is held for the next key. */
  isCtrl: boolean
  onCtrl: (isHeld: boolean) => void
  onKey: (key: ScreenKey) => void
}

/** Keys that phones lack. They keep the focus, because the phone's keyboard would close. */
function ScreenKeys({ isCtrl, onCtrl, onKey }: ScreenKeysProps) {
  return (
    <div
      class="keys"
      role="group"
      aria-label="Keys"
      onPointerDown={(event) => event.preventDefault()}
      onMouseDown={(event) => event.preventDefault()}
    >
      <button type="button" aria-pressed={isCtrl} onClick={() => onCtrl(!isCtrl)}>
        Ctrl
      </button>
      {screenKeys.map((key) => (
        <button key={key} type="button" aria-label={names[key] ?? key} onClick={() => onKey(key)}>
          {key}
        </button>
      ))}
    </div>
  )
}

interface TerminalPaneProps {
  tab: Tab
  isShown: boolean
  onLeave: () => void
}

/** Milliseconds that a notice stays. */
const noticeTime = 8_000

export function TerminalPane({ tab, isShown, onLeave }: TerminalPaneProps) {
  const element = useRef<HTMLDivElement>(null)
  const screen = useRef<Screen>(undefined)
  const link = useRef<TerminalLink>(undefined)
  const [state, setState] = useState<LinkState>({ kind: 'opening' })
  const [notice, setNotice] = useState('')
  const [size, setSize] = useState('')
  const isReader = useStore(readerMode)
  const ctrl = useRef(false)
  const [isCtrl, setCtrl] = useState(false)
  const holdCtrl = (isHeld: boolean) => {
    ctrl.current = isHeld
    setCtrl(isHeld)
  }

  function press(key: ScreenKey): void {
    const terminal = screen.current?.terminal
    if (terminal === undefined) return
    const isApplication = terminal.modes.applicationCursorKeysMode
    const sequence = sequenceOf(key, { isApplication, isCtrl: ctrl.current })
    holdCtrl(false)
    terminal.input(sequence)
  }

  useEffect(() => {
    if (element.current === null) return undefined
    const made = createScreen(element.current, onLeave)
    const { terminal } = made
    made.fit()
    let noticeTimer: ReturnType<typeof setTimeout> | undefined
    /** Last output before this page; null once it is on the screen. */
    let replayedTo: number | null = null
    let wasAway = false
    /** News of this attachment, which a notice about missing input must not hide. */
    let alsoNew = ''
    const watcherNotices = new WatcherNotices()
    const say = (message: string) => {
      setNotice(message)
      clearTimeout(noticeTimer)
      noticeTimer = setTimeout(() => setNotice(''), noticeTime)
    }
    function replayed(): void {
      replayedTo = null
      made.answer(!tab.isWatching)
      if (!tab.isWatching) made.fit()
    }
    const { cols, rows } = terminal
    setSize(`${cols}×${rows}`)
    const target =
      tab.sessionId === undefined
        ? { create: { hostId: tab.hostId, cols, rows, trueColor: true } }
        : { sessionId: tab.sessionId, watch: tab.isWatching }
    const terminalLink = createTerminalLink(target, {
      state(next) {
        setState(next)
        if (next.kind !== 'away') return
        wasAway = true
        // Earlier notices are obsolete.
        setNotice('')
      },
      named: (sessionId) => nameTerminal(tab.key, sessionId),
      attached(about, isFresh) {
        if (isFresh) {
          const isNew = 'create' in target
          made.answer(isNew)
          // Replay at the recorded size; `replayed` then fits the screen.
          if (!isNew) terminal.resize(about.cols, about.rows)
          if (!isNew) replayedTo = about.last
          if (!isNew && about.last <= about.after) replayed()
        }
        const watchers = about.watching ? null : watcherNotices.attached(about.watchers)
        const news = attachedText({ isBack: !isFresh && wasAway, omitted: about.omitted, watchers })
        if (news !== '') say(news)
        alsoNew = attachedText({ isBack: false, omitted: about.omitted, watchers })
        queueMicrotask(() => {
          alsoNew = ''
        })
        wasAway = false
        // The page may have been resized while disconnected or opening.
        if (replayedTo === null) terminalLink.resize(terminal.cols, terminal.rows)
      },
      output(data, sequence, shown) {
        terminal.write(data, () => {
          if (replayedTo !== null && sequence >= replayedTo) replayed()
          shown()
        })
      },
      resized: (width, height) => terminal.resize(width, height),
      notice(message, kind) {
        if (kind !== null) watcherNotices.noticed(kind)
        say(alsoNew === '' ? message : `${message}. ${alsoNew}`)
      },
    })
    terminal.onData((data) => {
      // Replies of the terminal are longer: they pass unchanged, and Ctrl stays for the next typed key.
      const isTyped = ctrl.current && data.length === 1
      if (isTyped) holdCtrl(false)
      terminalLink.input(isTyped ? withCtrl(data) : data)
    })
    terminal.onBinary((data) => terminalLink.input(data))
    terminal.onResize((next) => {
      setSize(`${next.cols}×${next.rows}`)
      if (replayedTo === null) terminalLink.resize(next.cols, next.rows)
    })
    const observer = new ResizeObserver(() => {
      if (!tab.isWatching && replayedTo === null) made.fit()
    })
    observer.observe(element.current)
    screen.current = made
    link.current = terminalLink
    return () => {
      observer.disconnect()
      clearTimeout(noticeTimer)
      terminalLink.drop()
      made.close()
    }
    // One session for the life of the pane: the tab's key never changes.
  }, [tab.key])

  useEffect(() => {
    // Keyboard navigation along the tabs must keep its focus.
    if (isShown && document.activeElement?.matches('[role=tab]:focus-visible') !== true)
      screen.current?.terminal.focus()
  }, [isShown])
  useEffect(() => {
    if (screen.current) screen.current.terminal.options.screenReaderMode = isReader
  }, [isReader])

  return (
    <div
      class={`pane ${isShown ? '' : 'behind'}`}
      role="tabpanel"
      id={`panel-${tab.key}`}
      aria-labelledby={tab.key}
      aria-hidden={!isShown}
    >
      <div class="screen" ref={element} />
      {!tab.isWatching && state.kind !== 'ended' && (
        <ScreenKeys isCtrl={isCtrl} onCtrl={holdCtrl} onKey={press} />
      )}
      <div class={`strip ${state.kind}`}>
        <span role="status">{stateText(state, tab, notice)}</span>
        <span class="spring" />
        {state.kind === 'replaced' && (
          <button type="button" onClick={() => link.current?.takeBack()}>
            Take it back
          </button>
        )}
        {state.kind === 'ended' && !tab.isWatching && (
          <button type="button" onClick={() => openTerminal({ id: tab.hostId, hostname: tab.hostname })}>
            Open another
          </button>
        )}
        {state.kind === 'open' && <span class="size">{size}</span>}
        <button type="button" onClick={() => screen.current?.copy()}>
          Copy
        </button>
        <button
          type="button"
          onClick={() => {
            link.current?.end()
            closeTab(tab.key)
          }}
        >
          {state.kind === 'ended' || tab.isWatching ? 'Close' : 'End session'}
        </button>
      </div>
    </div>
  )
}

function stateText(state: LinkState, { title, isWatching }: Tab, notice: string): string {
  switch (state.kind) {
    case 'opening':
      return `Opening ${title} … ${notice}`
    case 'away':
      return `Connection lost; reconnecting … ${notice || (isWatching ? '' : 'Input is kept and sent later.')}`
    case 'replaced':
      return 'This session was opened elsewhere.'
    case 'ended':
      return state.word
    case 'open':
      return notice !== '' ? notice : isWatching ? `Watching ${title}` : ''
  }
}
