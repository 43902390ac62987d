import { useLayoutEffect, useRef } from 'preact/hooks'
import type { OutputLine } from './output-lines.ts'

interface OutputPaneProps {
  lines: readonly OutputLine[]
  isLater: boolean
  isRunning: boolean
}

/** Within so many pixels of its end a reader follows it. */
const atEnd = 40

/** What the hosts said, a line each with its host. It follows the end until somebody scrolls back. */
export function OutputPane({ lines, isLater, isRunning }: OutputPaneProps) {
  const pane = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  useLayoutEffect(() => {
    if (follows.current && pane.current) pane.current.scrollTop = pane.current.scrollHeight
  }, [lines])
  return (
    <div
      ref={pane}
      class="output"
      role="log"
      aria-label="Output"
      tabIndex={0}
      onScroll={({ currentTarget: at }) => {
        follows.current = at.scrollHeight - at.scrollTop - at.clientHeight < atEnd
      }}
    >
      {isLater && <p class="hint">Earlier output is not shown here</p>}
      {lines.map(({ key, hostname, stream, text }) => (
        <div key={key} class={stream}>
          <span class="host">{hostname}</span>
          <span class="text">{text}</span>
        </div>
      ))}
      {lines.length === 0 && <p class="hint">{isRunning ? 'Nothing yet …' : 'No output'}</p>}
    </div>
  )
}
