import { useLayoutEffect, useRef } from 'preact/hooks'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import type { OutputLine } from './output-lines.ts'

/** Pixels from the end within which the view follows new output. */
const atEnd = 40
/** Bounds of the width of the host column, in characters. */
const [narrowest, widest] = [6, 28]

const mostMarks = 1_000

interface OutputPaneProps {
  lines: readonly OutputLine[]
  empty: string
  isLater: boolean
  /** Whether all lines belong to the chosen host. */
  isOne: boolean
  isDiff: boolean
  search: string
}

/** Output lines with their hosts. Follows the end until the user scrolls back. */
export function OutputPane({ lines, empty, isLater, isOne, isDiff, search }: OutputPaneProps) {
  const pane = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  useLayoutEffect(() => {
    if (follows.current && pane.current) pane.current.scrollTop = pane.current.scrollHeight
  }, [lines])
  const hasPhases = lines.some(({ phase }) => phase !== undefined)
  const longest = lines.reduce((most, { hostname }) => Math.max(most, hostname.length), narrowest)
  return (
    <div
      ref={pane}
      class={isOne ? 'output one' : 'output'}
      role="log"
      aria-label="Output"
      tabIndex={0}
      style={{ '--host': `${Math.min(longest, widest)}ch` }}
      onScroll={({ currentTarget: at }) => {
        follows.current = at.scrollHeight - at.scrollTop - at.clientHeight < atEnd
      }}
    >
      {isLater && <p class="hint">Earlier output is not shown here</p>}
      {lines.map(({ key, hostname, stream, phase, text }) => (
        <div key={key} class={isDiff ? `${stream} ${diffClass(text)}` : stream}>
          <span class="host" title={hostname}>
            {sanitizeLine(hostname)}
          </span>
          {hasPhases && <span class="phase">{phase?.toLowerCase() ?? 'script'}</span>}
          <span class="text">
            <Marked text={text} search={search} />
          </span>
        </div>
      ))}
      {lines.length === 0 && <p class="hint">{empty}</p>}
    </div>
  )
}

/** A text with its search matches marked; ignores case. */
export function Marked({ text, search }: { text: string; search: string }) {
  const wanted = search.toLowerCase()
  // Offsets match only if lower case has the same length.
  const lower = text.toLowerCase()
  if (wanted === '' || lower.length !== text.length) return text
  const parts = []
  let from = 0
  for (let at = lower.indexOf(wanted); at !== -1 && parts.length < 2 * mostMarks; ) {
    parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + wanted.length)}</mark>)
    from = at + wanted.length
    at = lower.indexOf(wanted, from)
  }
  return [...parts, text.slice(from)]
}

/** CSS class of a line of a unified diff; empty for other lines. */
export function diffClass(line: string): string {
  if (/^(?:---|\+\+\+) /.test(line)) return 'diff-file'
  if (line.startsWith('@@ ')) return 'diff-place'
  if (line.startsWith('+')) return 'diff-new'
  return line.startsWith('-') ? 'diff-old' : ''
}
