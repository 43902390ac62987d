import { useRef } from 'preact/hooks'
import { useTitle } from '../parts/browser.ts'
import { hrefOf } from '../route.ts'
import { useStore } from '../store.ts'
import { openTerminals, showTab, type Tab } from './open-terminals.ts'
import { readerMode } from './screen.ts'
import { TerminalPane } from './terminal-pane.tsx'

function Title() {
  const { tabs, active } = useStore(openTerminals)
  useTitle(tabs.find(({ key }) => key === active)?.title ?? 'Terminals')
  return null
}

/** Arrow keys cycle through the tabs (WAI-ARIA, tabs pattern). */
function neighbour(tabs: readonly Tab[], active: string | undefined, key: string): string | undefined {
  const at = tabs.findIndex((tab) => tab.key === active)
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[key]
  return to === undefined ? undefined : tabs[(to + tabs.length) % tabs.length]?.key
}

export function TerminalsPage({ isShown }: { isShown: boolean }) {
  const { tabs, active } = useStore(openTerminals)
  const isReader = useStore(readerMode)
  const list = useRef<HTMLDivElement>(null)
  const focusTab = (key: string | undefined) =>
    list.current?.querySelector<HTMLElement>(`#${key ?? 'none'}`)?.focus()
  return (
    <section class="terminals" hidden={!isShown} aria-label="Terminals">
      {isShown && <Title />}
      <div class="tabs">
        <div
          ref={list}
          role="tablist"
          aria-label="Open terminals"
          onKeyDown={(event) => {
            const next = neighbour(tabs, active, event.key)
            if (next === undefined) return
            event.preventDefault()
            showTab(next)
            focusTab(next)
          }}
        >
          {tabs.map(({ key, title }) => (
            <button
              key={key}
              id={key}
              type="button"
              role="tab"
              aria-selected={key === active}
              aria-controls={`panel-${key}`}
              tabIndex={key === active ? 0 : -1}
              onClick={() => showTab(key)}
            >
              {title}
            </button>
          ))}
        </div>
        <a class="new" href={hrefOf('hosts')}>
          New …
        </a>
        <span class="spring" />
        <small class="hint">Ctrl+Shift+L leaves the screen by keyboard</small>
        <button type="button" class="plain" aria-pressed={isReader} onClick={() => readerMode.set(!isReader)}>
          Screen reader
        </button>
      </div>
      <div class="panes">
        {tabs.map((tab) => (
          <TerminalPane
            key={tab.key}
            tab={tab}
            isShown={isShown && tab.key === active}
            onLeave={() => focusTab(openTerminals.get().active)}
          />
        ))}
        {tabs.length === 0 && (
          <p class="empty">
            No terminal is open. <a href={hrefOf('hosts')}>Choose a host</a>.
          </p>
        )}
      </div>
    </section>
  )
}
